"""How long N simulated ranks take to agree through one store, and N simulated hosts to come together.

    python benchmarks/rendezvous.py [--plot FILE] [N …]

A simulated rank is a connection, all of them in this process. What the times are to show is that they grow as N does.
"""

import argparse
import os
import resource
import selectors
import socket
import threading
import time

from tfdp.runtime.agent import Comer, Meeting, StoreServer
from tfdp.runtime.agent.rendezvous import gathered, joined, listen
from tfdp.runtime.store import GATHER, HELLO, VALUE, WELCOME, Frame, parsed

ADDRESS = b'{"address": "10.0.0.1:12345"}'


def agree(ranks: int) -> float:
    """Seconds from the first rank's word until all have the words of all."""
    server = StoreServer(ranks, "job", 2**30)
    ends = {rank: socket.socket(fileno=os.dup(end.fileno())) for rank, end in server.ends.items()}
    server.start()
    for rank, end in ends.items():
        say(end, Frame(HELLO, 0, rank, "job", b"1"))
    receive(ends, WELCOME)
    began = time.perf_counter()
    for rank, end in ends.items():
        say(end, Frame(GATHER, 1, rank, "transport/address", ADDRESS))
    receive(ends, VALUE)
    seconds = time.perf_counter() - began
    server.close()
    for end in ends.values():
        end.close()
    return seconds


def say(end: socket.socket, frame: Frame) -> None:
    end.sendall(b"".join(frame.buffers()))


def receive(ends: dict[int, socket.socket], kind: int) -> None:
    """Return when each end has got a frame of this kind."""
    waiting = selectors.DefaultSelector()
    for end in ends.values():
        end.setblocking(True)
        waiting.register(end, selectors.EVENT_READ, bytearray())
    while waiting.get_map():
        for key, _ in waiting.select():
            key.data.extend(key.fileobj.recv(2**20))
            if any(frame.kind == kind for frame in parsed(key.data)):
                waiting.unregister(key.fileobj)


def meet(hosts: int) -> float:
    """Seconds from the first host's start until all have the plan."""
    began = time.perf_counter()
    listener = listen(("127.0.0.1", 0))
    meeting = Meeting(listener.getsockname()[:2], b"a secret of these", hosts, False, 120.0, print)
    links = []

    def join(node: int) -> None:
        links.append(joined(meeting, Comer(8, node, host=str(node)))[1])

    threads = [threading.Thread(target=join, args=(node,)) for node in range(1, hosts)]
    for thread in threads:
        thread.start()
    _, others = gathered(meeting, listener, Comer(8, 0, host="0"))
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    for link in [*links, *others]:
        link.close(0.1)
    return seconds


def plotted(file: str, sizes: list[int], agreeing: list[float], meeting: list[float]) -> None:
    """Draw both times by the number of ranks, in the format of the file's ending."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.add_subplot(xlabel="ranks", ylabel="seconds", ylim=(0, 1.1 * max(*agreeing, *meeting)))
    axes.plot(sizes, meeting, "o-", label="all hosts (of 8 ranks) have come, and have the plan")
    axes.plot(sizes, agreeing, "s-", label="all ranks agree")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file)


def main() -> None:
    """Print a table, and draw it."""
    parser = argparse.ArgumentParser(description="How long simulated ranks take to come together, and to agree.")
    parser.add_argument("sizes", type=int, nargs="*", default=[64, 128, 256, 512, 1000], metavar="N")
    parser.add_argument("--plot", metavar="FILE")
    asked = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    agreeing, meeting = [], []
    print("| ranks | all agree, s | hosts of 8 | all have the plan, s |\n|---|---|---|---|")
    for ranks in asked.sizes:
        hosts = max(2, ranks // 8)
        agreeing.append(agree(ranks))
        meeting.append(meet(hosts))
        print(f"| {ranks} | {agreeing[-1]:.2f} | {hosts} | {meeting[-1]:.2f} |", flush=True)
    if asked.plot:
        plotted(asked.plot, asked.sizes, agreeing, meeting)


if __name__ == "__main__":
    main()
