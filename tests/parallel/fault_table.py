"""What can go wrong on one rank, what the others must say, what is on the screen, and how long it takes until all have
ended.

`make faults` prints the table for scripts with TensorFlow, over the transport that TFDP_TRANSPORT names; test_faults.py
asserts each row of it for scripts that join the job below TensorFlow, which start at once.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_SECONDS = 15.0
LIMIT_LINES = 30
# The ranks start one after the other, and that must not be taken for a stall.
STALL_SECONDS, STALL_SECONDS_WITH_TENSORFLOW = 4.0, 20.0
PATIENCE = 120.0

JOIN = """
import os, pathlib, signal, sys, threading, time
import numpy as np
from tfdp.runtime.clusters import local
from tfdp.runtime.store import speak_at_the_end
from tfdp.runtime.foundation import Min, Sum
from tfdp.runtime.store import SocketStore, end_without_launcher
from tfdp.runtime.transports import Label
from tfdp.runtime.transports._arena import Arena
from tfdp.runtime.transports.shared_memory import SharedMemory

place = local.topology(os.environ)
rank, size = place.rank, place.size
stall = float(os.environ["TFDP_STALL_SECONDS"])
wire = SharedMemory(Arena(local.number(os.environ, local.MEMORY_FD), size), place, stall)
store = SocketStore(local.number(os.environ, local.STORE_FD), rank, os.environ[local.JOB], stall, end_without_launcher)
speak_at_the_end(store, rank)
leave = wire.close

def meet(count=3, dtype="float32", op=Sum, name="step"):
    return wire.allreduce([np.ones(count, dtype)], op, Label(name, f"{__file__}:{CALL}"))[0]

def gather():
    return wire.allgather(np.ones(3, np.float32), Label("step", f"{__file__}:{CALL}"))

def root_work(work):
    if rank == 0:
        work()
        store.publish("work", b"done")
    else:
        store.fetch("work", threading.TIMEOUT_MAX, publisher=0)
"""

TENSORFLOW = """
import os, pathlib, signal, sys, threading, time
import tfdp.runtime as dp
dp.init()
import tensorflow as tf
from tfdp.runtime import Min, Sum

rank, size, leave, root_work = dp.rank(), dp.size(), dp.shutdown, dp.on_root

@tf.function
def meet(count=3, dtype="float32", op=Sum, name="step"):
    return dp.allreduce(tf.ones([count], dtype), op, name)

@tf.function
def gather():
    return dp.allgather(tf.ones([3]), "step")
"""

BODY = """
def note():
    pathlib.Path(sys.argv[1], "at").write_text(repr(time.time()))

for _ in range(3):
    meet()
"""


@dataclasses.dataclass(frozen=True)
class Fault:
    """`here` runs on the faulty rank after a few exchanges, `there` on the others; what they must say, as a pattern.

    `cause` is said by the launcher in the last three lines on the screen, of which there are at most `lines` in all.
    `{bad}` is the number of the faulty rank.
    """

    name: str
    here: str
    said: str
    cause: str
    there: str = "meet()"
    rank: int = -1
    waits: bool = False
    lines: int = LIMIT_LINES


IN_CALL = r"(was in|waits in|cannot begin) allreduce Sum named 'step' .* at \S+:\d+"
ABORTED = rf"JobAborted: rank {{r}} {IN_CALL}.*: "
DIED = ABORTED + "rank {bad} ended with "
RAISED = DIED + r"ValueError: bad data \(at \S+:\d+\)"
ABSENT = rf"(RankFinishedError: rank {{r}} {IN_CALL}.* rank {{bad}}, which has |{ABORTED})"
STALLED = rf"(StallError: rank {{r}} has waited \d+ s in allreduce .* at \S+:\d+.* for .*rank {{bad}}|{ABORTED})"
ELSEWHERE = r"JobAborted: rank {r} was at \S+:\d+ when the job ended: rank {bad} "
PARTED = r"CollectiveMismatchError: the ranks met in different collectives: .*rank {bad} called .*at \S+:\d+"

FIRST = "rank {bad} failed first"
ANY_FIRST = r"rank \d failed first"
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
STOP = "os.kill(os.getpid(), signal.SIGSTOP)"
COMPUTE = "while True: time.sleep(0.01)"
LARGE = "while True: meet(200_000)"

FAULTS = [
    Fault("exception", "raise ValueError('bad data')", RAISED, FIRST),
    Fault(
        "exception, and a thread that goes on",
        "threading.Thread(target=time.sleep, args=(1000,)).start()\nraise ValueError('bad data')",
        RAISED,
        FIRST,
    ),
    Fault("sys.exit(3)", "sys.exit(3)", DIED + "exit status 3", FIRST + ", with exit status 3"),
    Fault("kill -9", KILL, DIED + "signal SIGKILL", FIRST),
    Fault(
        "kill -9 within an exchange",
        f"threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()\n{LARGE}",
        DIED + "signal SIGKILL",
        FIRST,
        there=LARGE,
    ),
    Fault(
        "crash in native code",
        "import ctypes; ctypes.string_at(0)",
        DIED + "signal SIGSEGV",
        FIRST + ", with signal SIGSEGV",
    ),
    Fault("abort()", "os.abort()", DIED + "signal SIGABRT", FIRST + ", with signal SIGABRT"),
    Fault("kill -9 while the others compute", KILL, ELSEWHERE + "ended with signal SIGKILL", FIRST, there=COMPUTE),
    Fault(
        "rank 0 dies in on_root",
        f"root_work(lambda: {KILL})",
        r"JobAborted: rank {r} (was waiting for|cannot fetch) .* at \S+:\d+.* rank 0 ended with signal SIGKILL",
        FIRST,
        there="root_work(print)",
        rank=0,
    ),
    Fault("finishes early", "sys.exit(0)", ABSENT, ANY_FIRST),
    Fault("dp.shutdown() early", "leave()\nthreading.Event().wait()", ABSENT, ANY_FIRST),
    Fault("kill -STOP", STOP, STALLED, "rank {bad} was stopped at that time", waits=True),
    Fault(
        "kill -STOP while the others compute",
        STOP,
        ELSEWHERE + r"has been stopped \(SIGSTOP\)",
        FIRST,
        there=COMPUTE,
        waits=True,
    ),
    Fault("does not come", "threading.Event().wait()", STALLED, ANY_FIRST, waits=True),
    Fault("another shape", "meet(4)", PARTED, ANY_FIRST),
    Fault("another dtype", "meet(3, 'float64')", PARTED, ANY_FIRST),
    Fault("another op", "meet(op=Min)", PARTED, ANY_FIRST),
    Fault("another name", "meet(name='other')", PARTED, ANY_FIRST),
    Fault("another order", "gather()\nmeet()", PARTED, ANY_FIRST, there="meet()\ngather()"),
    Fault(
        "ctrl-C",
        "os.kill(os.getppid(), signal.SIGINT)\nthreading.Event().wait()",
        r"(KeyboardInterrupt|JobAborted)",
        "stopped by SIGINT",
        lines=2,
    ),
]


def script(head, fault, bad):
    """The text of the script, which the faulty rank `bad` leaves early."""
    here = "\n".join("    " + line for line in ["note()", *fault.here.split("\n")])
    there = "\n".join("    " + line for line in fault.there.split("\n"))
    call = head[: head.index("wire.allreduce" if "wire" in head else "dp.allreduce")].count("\n") + 2
    return f"CALL = {call}{head}{BODY}\nif rank == {bad}:\n{here}\nelse:\n{there}\n"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a launch with a fault ended: seconds from the fault to the end of all processes, and what was wrong.

    screen: the lines of stdout and stderr. said: the whole stderr of each rank.
    """

    seconds: float
    status: int
    screen: list
    said: list
    problems: list


def run(fault, size, head=JOIN, **environ):
    """Launch a script with the fault on `size` ranks and look at what it leaves."""
    bad = fault.rank % size
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "script.py")
        path.write_text(script(head, fault, bad))
        temporary = pathlib.Path(folder, "tmp")
        temporary.mkdir()
        base = {name: value for name, value in os.environ.items() if name == "TFDP_TRANSPORT" or "TFDP_" not in name}
        seconds = stall(head) if fault.waits else 60
        own = {"TF_CPP_MIN_LOG_LEVEL": "3", "TFDP_STALL_SECONDS": f"{seconds:g}", "TMPDIR": str(temporary)}
        memory, logs = set(os.listdir("/dev/shm")), pathlib.Path(folder, "logs")
        done = subprocess.run(
            [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(size), "--log-dir", str(logs), str(path), folder],
            env={**base, **own, **environ},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        ended, at = time.time(), pathlib.Path(folder, "at")
        screen = [*done.stdout.splitlines(), *done.stderr.splitlines()]
        said = [(logs / f"rank-{rank}.stderr.log").read_text() for rank in range(size)]
        if not at.exists():
            return Outcome(0.0, done.returncode, screen, said, ["the fault was not reached"])
        problems = [*unsaid(fault, bad, said), *unseen(fault, bad, done.returncode, screen)]
        problems += left(path, temporary, memory)
        return Outcome(ended - float(at.read_text()), done.returncode, screen, said, problems)


def unsaid(fault, bad, said):
    """What a rank has not said."""
    for rank, text in enumerate(said):
        # One word of a message may come from a rank whose turn was first; each says something of its own.
        pattern = fault.said.replace("{bad}", str(bad)).replace("{r}", str(rank))
        if rank != bad and not re.search(pattern, text):
            yield f"rank {rank} does not say {pattern}"


def unseen(fault, bad, status, screen):
    """What the launcher has not said, or what it says too much."""
    if status == 0:
        yield "the launcher says that all is well"
    if not any(re.search(f"^tfdp: .*{fault.cause.format(bad=bad)}", line) for line in screen[-3:]):
        yield f"the last lines do not say {fault.cause.format(bad=bad)}"
    if len(screen) > fault.lines:
        yield f"{len(screen)} lines are on the screen"


def left(path, temporary, memory):
    """What is left behind: processes, files, shared memory. Ports and file descriptors go with the processes."""
    for process in pathlib.Path("/proc").iterdir():
        if process.name.isdigit() and str(path) in _command_line(process):
            yield f"process {process.name} is left"
    # TensorFlow removes what AutoGraph has compiled when a process ends by itself, which one that is killed does not.
    files = [each.name for each in temporary.iterdir() if not each.name.startswith("__autograph_generated_file")]
    yield from (f"temporary file {each} is left" for each in files)
    new = set(os.listdir("/dev/shm")) - memory
    held = _mapped() if new else set()
    for name in new:
        with contextlib.suppress(FileNotFoundError):  # another test's, gone by now
            if os.stat(f"/dev/shm/{name}").st_ino not in held:
                yield f"/dev/shm/{name} is left"


def _mapped():
    """The inodes of shared memory that living processes map, as other tests do that run at the same time."""
    found = set()
    for maps in pathlib.Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            found.update(int(line.split()[4]) for line in maps.read_text().splitlines() if " /dev/shm/" in line)
    return found


def _command_line(process):
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def stall(head):
    """The stall limit of a script."""
    return STALL_SECONDS if head == JOIN else STALL_SECONDS_WITH_TENSORFLOW


def limit(fault, head=JOIN):
    """The seconds in which all must be over."""
    return LIMIT_SECONDS + (stall(head) if fault.waits else 0)


def first_words(fault, bad, outcome):
    """The message of the first rank that says what the fault asks for, for the table."""
    pattern = fault.said.replace("{bad}", str(bad)).replace("{r}", r"\d")
    text = "\n".join(outcome.said)
    found = re.search(pattern, text)
    return shortened(text[found.start() :].partition("\n")[0] if found else "nothing")


def shortened(line):
    """A line for the table."""
    return re.sub(r"/\S*/", "", line)[:160].replace("|", "/")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--join", action="store_true", help="scripts without TensorFlow")
    parser.add_argument("-np", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("-k", default="", help="only faults whose name contains this")
    asked = parser.parse_args()
    head = JOIN if asked.join else TENSORFLOW
    transport = os.environ.get("TFDP_TRANSPORT", "shared_memory")
    print("| fault | transport | N | seconds | limit | status | another rank says | lines | the last three | missing |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    failed = False
    for fault in FAULTS:
        for size in asked.np if asked.k in fault.name else ():
            outcome = run(fault, size, head)
            failed |= bool(outcome.problems) or outcome.seconds > limit(fault, head)
            said = first_words(fault, fault.rank % size, outcome)
            last = "<br>".join(map(shortened, outcome.screen[-3:]))
            print(
                f"| {fault.name} | {transport} | {size} | {outcome.seconds:.1f} | {limit(fault, head):g} "
                f"| {outcome.status} | {said} | {len(outcome.screen)} | {last} "
                f"| {'; '.join(outcome.problems) or '-'} |",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
