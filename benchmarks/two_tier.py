"""What goes over the network between two hosts with two ranks each, and how long it takes: two_tier against ring.

    python benchmarks/two_tier.py [--rate 1gbit] [--elements 4000000] [--rounds 3]

The hosts are network namespaces with a link between them that lets so much through each way (root and iproute2 are
needed). An all-reduce of float32 elements; both ways by turns, in one run.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

LINK, ADDRESSES = "veth0", ("10.77.34.1", "10.77.34.2")
REDUCES = """
import glob, sys, time
import tensorflow as tf
import tfdp.runtime as dp
dp.init()
ones = tf.ones([int(sys.argv[1])])

@tf.function
def step(x):
    return dp.allreduce(x, op=dp.Sum)

def sent():
    return sum(int(open(path).read()) for path in glob.glob("/sys/class/net/veth0/statistics/tx_bytes"))

def bare(count):
    for _ in range(count):
        found = step(ones)
    return found.numpy()

bare(3)
dp.barrier()
before, began = sent(), time.perf_counter()
bare(10)
seconds = (time.perf_counter() - began) / 10
dp.barrier()
time.sleep(0.2)
if dp.local_rank() == 0:
    print("found", seconds, (sent() - before) / 10 / (4 * int(sys.argv[1])))
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def hosts(rate: str) -> Iterator[list[str]]:
    """The names of two namespaces."""
    names = [f"tfdp-tier-{os.getpid()}-{number}" for number in range(2)]
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", LINK, "netns", names[0], "type", "veth", "peer", "name", LINK, "netns", names[1])
        for name, address in zip(names, ADDRESSES, strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", LINK)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", LINK, "up")
            limit = [
                "tc",
                "qdisc",
                "add",
                "dev",
                LINK,
                "root",
                "tbf",
                "rate",
                rate,
                "burst",
                "256kb",
                "latency",
                "50ms",
            ]
            ip("netns", "exec", name, *limit)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def measured(names: list[str], transport: str, script: Path, elements: int) -> tuple[float, float]:
    """Seconds of an all-reduce, and what a host sends of the vector's bytes; the larger of both hosts."""
    environ = {**os.environ, "TFDP_SECRET": "of this benchmark only", "TFDP_TRANSPORT": transport}
    started = []
    for node, name in enumerate(names):
        place = ["-np", "2", "--nnodes", "2", "--node-rank", str(node), "--root", ADDRESSES[0]]
        launch = [sys.executable, "-m", "tfdp.runtime.launch", *place, str(script), str(elements)]
        line = ["ip", "netns", "exec", name, *launch]
        started.append(subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environ))
    said = [process.communicate()[0] for process in started]
    found = [line.split()[-2:] for text in said for line in text.splitlines() if "found" in line]
    return max(float(seconds) for seconds, _ in found), max(float(share) for _, share in found)


def main() -> None:
    """Both transports by turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--elements", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {"ring": [], "two_tier": []}
    with tempfile.TemporaryDirectory() as folder, hosts(asked.rate) as names:
        script = Path(folder, "reduces.py")
        script.write_text(REDUCES)
        for _ in range(asked.rounds):
            for transport, results in found.items():
                results.append(measured(names, transport, script, asked.elements))
    seconds, shares = (
        {name: statistics.median(v[i] for v in results) for name, results in found.items()} for i in (0, 1)
    )
    for name in found:
        print(f"{name:8}  {seconds[name]:.3f} s  {shares[name]:.3f} of the vector's bytes from each host")
    ratios = (each["two_tier"] / each["ring"] for each in (seconds, shares))
    print("two_tier / ring: time {:.2f}, bytes {:.2f}".format(*ratios))


if __name__ == "__main__":
    main()
