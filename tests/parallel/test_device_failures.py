"""TensorFlow's collectives never hang: what a rank says when another dies, stops, leaves or calls something else."""

import re

import pytest

pytest.importorskip("tensorflow")

HEAD = """
import os, signal, sys, time
import tfdp.runtime as dp
dp.init(same_start=False)
import tensorflow as tf
from tfdp.runtime.job import current

@tf.function
def step(x):
    return dp.allreduce(x) + dp.allreduce(x * 2)

step(tf.ones([10]))
"""
PLACE = r"at \S*script\.py:10 \(in step\)"


@pytest.fixture
def run(launch):
    def over_tensorflow(np, script, **environ):
        options = ("--traceback", "full")  # what the ranks say that another one has stopped is looked at here
        ring = {"TFDP_TRANSPORT": "ring", "TFDP_GRACE_SECONDS": "20"}
        return launch(np, HEAD + script, options=options, **{**ring, **environ})

    return over_tensorflow


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize(
    ("ending", "status", "cause"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "rank 1 ended with signal SIGKILL"),
        ("sys.exit(0)", 1, "for rank 1, which has ended without an error"),
    ],
)
def test_a_rank_that_ends_between_two_calls(run, ending, status, cause):
    done = run(2, f"if dp.rank() == 1:\n    {ending}\nstep(tf.ones([10]))\nprint('all steps')\n")
    assert done.returncode == status, done.stderr
    assert cause in done.stderr
    assert "all steps" not in done.stdout
    assert re.search(rf"rank 0 (was|waits) in allreduce Average of float32\[10\] {PLACE}", done.stderr)


DURING = """
# A rank ends when it knows that all are in the collective and none is through: its own share is never sent.
exchange = current().transport._exchange
begun = exchange.ways.reduced
def hold(*args):
    if dp.rank() == 1:
        {ending}
    return begun(*args)
exchange.ways.reduced = hold
"""


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("in_function", [False, True])
def test_a_rank_that_is_killed_in_the_middle_of_a_call(run, in_function):
    killed = "tf.numpy_function(lambda: os.kill(os.getpid(), signal.SIGKILL), [], [])"
    call = "tf.function(dp.allreduce)" if in_function else "dp.allreduce"
    script = DURING.format(ending=f"with tf.control_dependencies([{killed}]): return begun(*args)")
    done = run(2, script + f"{call}(tf.ones([7]))\n")
    assert done.returncode == 137, done.stderr
    said = r"rank 0 was in allreduce Average of float32\[7\] at \S*script\.py:\d+ when the job ended: rank 1 ended with"
    assert re.search(said, done.stderr), done.stderr


@pytest.mark.long
def test_a_rank_that_stops_in_the_middle_of_a_call(run):
    script = DURING.format(ending="os.kill(os.getpid(), signal.SIGSTOP)")
    done = run(2, script + "dp.allreduce(tf.ones([7]))\n", TFDP_STALL_SECONDS="2", TFDP_GRACE_SECONDS="3")
    # Rank 0 and the launcher give rank 1 the same time: whichever notices first ends the job, and both name it.
    where = r"in allreduce Average of float32\[7\] at \S*script\.py:\d+"
    if done.returncode == 137:
        assert re.search(f"rank 0 was {where} when the job ended: rank 1 has been", done.stderr)
        assert "tfdp: rank 1 failed first, with signal SIGKILL" in done.stderr
    else:
        assert done.returncode == 1, done.stderr
        assert re.search(f"StallError: rank 0 has been {where} for 2 s since all ranks had come to it", done.stderr)
        assert "tfdp: rank 1 was stopped at that time (SIGSTOP" in done.stderr


@pytest.mark.long
def test_a_rank_that_does_not_come(run):
    script = "if dp.rank() == 1: time.sleep(1000)\nstep(tf.ones([10]))"
    done = run(2, script, TFDP_STALL_SECONDS="1", TFDP_GRACE_SECONDS="3")
    assert done.returncode == 1
    assert re.search(
        rf"StallError: rank 0 has waited \d+ s in allreduce .* {PLACE}.* for rank 1, whose last call", done.stderr
    )
    assert "tfdp: rank 0 failed first" in done.stderr


def test_other_shapes_types_operations_or_an_other_order_are_named_on_each_rank(run):
    script = """
one = dp.rank() == 1
for call in (
    lambda: dp.allreduce(tf.ones([2 + one])),
    lambda: dp.allreduce(tf.ones([2], tf.float64 if one else tf.float32)),
    lambda: dp.allreduce(tf.ones([2]), dp.Max if one else dp.Sum),
    lambda: dp.allgather(tf.ones([2])) if one else dp.barrier(),
):
    for way in (call, tf.function(call)):
        try:
            way()
        except (dp.CollectiveMismatchError, tf.errors.OpError) as error:
            print("MISMATCH", "rank 0 called" in str(error), "rank 1 called" in str(error), "script.py:" in str(error))
print(float(dp.allreduce(1.0, dp.Sum)))
"""
    done = run(2, script)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        assert done.stdout.count(f"[{rank}] MISMATCH True True True") == 8, done.stdout
        assert f"[{rank}] 2.0" in done.stdout


def test_tensorflow_used_before_the_job_is_joined(launch):
    script = "import tensorflow as tf\ntf.ones(1)\nimport tfdp.runtime as dp\ndp.init()"
    done = launch(2, script, TFDP_TRANSPORT="ring")
    assert done.returncode == 1
    # Each rank finds it by itself; the first to say so ends the job, perhaps before the other has come so far.
    said = r"TransportError: rank [01] cannot start TensorFlow's collectives: TensorFlow has already been"
    assert re.search(said, done.stderr), done.stderr
    assert "Call dp.init() before anything else of TensorFlow" in done.stderr


def test_nccl_without_gpus_is_refused(launch):
    done = launch(
        2, "import tfdp.runtime as dp\ndp.init()\nimport tensorflow", TFDP_TRANSPORT="nccl", CUDA_VISIBLE_DEVICES="-1"
    )
    assert done.returncode == 1
    assert "TFDP_TRANSPORT=nccl needs a GPU for each rank; TensorFlow finds none for rank(s) 0, 1" in done.stderr
