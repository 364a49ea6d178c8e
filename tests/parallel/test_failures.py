"""What the other ranks and the launcher say when one rank fails, stalls or leaves. Never a hang.

Most scripts join the job below TensorFlow, which would take seconds to import in each.
"""

import re
import signal

import pytest

pytest.importorskip("numpy")

JOIN = """
import os, signal, sys, threading, time
import numpy as np
from tfdp.runtime.clusters import local
from tfdp.runtime.foundation import Sum
from tfdp.runtime.store import SocketStore, end_without_launcher
from tfdp.runtime.transports import Label
from tfdp.runtime.transports._arena import Arena
from tfdp.runtime.transports.shared_memory import SharedMemory

place = local.topology(os.environ)
rank, size = place.rank, place.size
stall = float(os.environ["TFDP_STALL_SECONDS"])
wire = SharedMemory(Arena(local.number(os.environ, local.MEMORY_FD), size), place, stall)
store = SocketStore(local.number(os.environ, local.STORE_FD), rank, os.environ[local.JOB], stall, end_without_launcher)

def total(count=3):
    return wire.allreduce([np.full(count, rank, np.float64)], Sum, Label("step", "train.py:8"))[0][0]

assert total() == sum(range(size))
"""


@pytest.fixture
def run(launch):
    def with_join(np, script, **environ):
        # What each rank says is looked at here, also of those that another one has stopped.
        options = ("--traceback", "full")
        return launch(np, JOIN + script, options=options, **{"TFDP_GRACE_SECONDS": "4", **environ})

    return with_join


def test_an_exception_on_one_rank_reaches_the_others_in_their_collective(run):
    done = run(3, "if rank == 1: raise ValueError('bad data')\ntotal()")
    assert done.returncode == 1
    said = "JobAborted: rank {} was in allreduce Sum named 'step' of float64[3] at train.py:8 when the job ended: "
    for rank in (0, 2):
        assert said.format(rank) + "rank 1 ended with exit status 1" in done.stderr
    assert "tfdp: rank 1 failed first, with exit status 1" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("tfdp: ValueError: bad data (at ")


def test_a_killed_rank_reaches_the_others_in_the_middle_of_a_large_exchange(run):
    script = """
if rank == 1:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
while True:
    total(300_000)
"""
    done = run(2, script, TFDP_SHM_BYTES="65536")
    assert done.returncode == 137
    assert "rank 1 ended with signal SIGKILL" in done.stderr
    assert "tfdp: rank 1 failed first, with signal SIGKILL" in done.stderr


def test_a_rank_that_ends_without_an_error_while_others_need_it(run):
    done = run(3, "if rank == 2: sys.exit(0)\nstore.publish('x', b'')\ntotal()")
    assert done.returncode == 1
    assert "for rank 2, which has ended without an error and will not come" in done.stderr
    assert re.search(r"tfdp: rank [01] failed first", done.stderr)


def test_a_rank_that_ends_without_an_error_while_nobody_needs_it(run):
    script = """
if rank == 0:
    store.publish("last words", b"x" * 1_000_000)
    sys.exit(0)
time.sleep(0.5)
assert len(store.fetch("last words")) == 1_000_000
print("went on")
"""
    done = run(2, script)
    assert (done.returncode, done.stdout) == (0, "[1] went on\n"), done.stderr


def test_a_fetch_from_a_rank_that_has_ended(run):
    done = run(2, "if rank == 0: sys.exit(0)\nstore.fetch('weights', publisher=0)")
    assert done.returncode == 1
    assert "RankFinishedError: rank 1 cannot fetch 'weights': " in done.stderr


def test_a_fetch_from_a_rank_that_has_failed(run):
    done = run(2, "if rank == 0: sys.exit(5)\nstore.fetch('weights')")
    assert done.returncode == 5
    assert re.search(r"JobAborted: rank 1 (was waiting for|cannot fetch) 'weights'", done.stderr)


def test_a_stalled_rank_is_named_and_is_not_taken_for_a_dead_one(run):
    done = run(2, "if rank == 1: time.sleep(1000)\ntotal(7)", TFDP_STALL_SECONDS="0.5")
    assert done.returncode == 1
    assert "StallError: rank 0 has waited " in done.stderr
    assert "for rank 1, whose last call was allreduce Sum named 'step' of float64[3] at train.py:8" in done.stderr
    assert "tfdp: rank 0 failed first" in done.stderr


def test_a_slow_rank_is_waited_for(run):
    done = run(2, "if rank == 1: time.sleep(1.5)\nprint(total(7))", TFDP_STALL_SECONDS="60")
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == ["[0] 1.0", "[1] 1.0"]


def test_the_rank_that_broke_off_is_the_cause_even_if_it_ends_later(run):
    script = """
if rank == 0:
    def interrupt(*_):
        raise KeyError("in the middle")
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        total()
    finally:
        sys.stderr.write("still cleaning up\\n")
        time.sleep(1)
store.fetch("nothing") if rank == 0 else time.sleep(1.2)
total()
"""
    done = run(2, script)
    assert done.returncode == 1
    assert "JobAborted: rank 1 cannot begin allreduce Sum" in done.stderr
    assert "because of KeyError: 'in the middle'" in done.stderr
    assert "tfdp: rank 0 failed first" in done.stderr


def test_a_signal_is_heard_inside_a_wait(run):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        pytest.skip("SIGINT is ignored here, as under nohup or in the background, and so it is by the launcher")
    done = run(2, "if rank == 1: time.sleep(0.3); os.kill(os.getppid(), signal.SIGINT); time.sleep(1000)\ntotal()")
    assert done.returncode == 130
    assert "KeyboardInterrupt" in done.stderr
    assert "tfdp: stopped by SIGINT" in done.stderr


def test_many_more_ranks_than_cores(run):
    script = """
for step in range(100):
    assert total(1 + step * 50) == sum(range(size))
    rows, counts = wire.allgather(np.full((rank, 2), rank), Label())
    assert counts.tolist() == list(range(size)) and rows.sum() == 2 * sum(r * r for r in range(size))
print("done")
"""
    done = run(8, script, TFDP_SHM_BYTES="65536")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] done" for rank in range(8)]


TRAIN = """
import os, signal, sys
import tfdp.runtime as dp
dp.init(same_start=False)
import tensorflow as tf

@tf.function
def step(x):
    return dp.allreduce(x) + dp.allreduce(x * 2)

for count in range(5):
    if count == 3 and dp.rank() == 1:
        {ending}
    step(tf.ones([1000]))
print("all steps")
"""


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize(
    ("ending", "status", "cause"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "rank 1 ended with signal SIGKILL"),
        ("raise ValueError('bad data')", 1, "rank 1 ended with ValueError: bad data (at "),
        ("sys.exit(0)", 1, "for rank 1, which has ended without an error"),
    ],
)
def test_a_training_function_does_not_hang(launch, ending, status, cause):
    pytest.importorskip("tensorflow")
    done = launch(2, TRAIN.format(ending=ending), options=("--traceback", "full"), TFDP_GRACE_SECONDS="20")
    assert done.returncode == status
    assert cause in done.stderr
    assert "all steps" not in done.stdout
    line = 1 + TRAIN[: TRAIN.index("    return dp.allreduce")].count("\n")
    assert re.search(rf"at \S*script\.py:{line} \(in step\)", done.stderr), "the place of the call"
