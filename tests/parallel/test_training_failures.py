"""What a rank says when the ranks' programs part: scripts that fail, on real ranks."""

import pytest

HEAD = "import tensorflow as tf\nimport tfdp.runtime as dp\ndp.init()\n"


def test_a_variable_that_rank_0_never_makes(launch):
    done = launch(2, HEAD + "if dp.rank() == 1:\n    tf.Variable(1.0, name='only_here')\n")
    assert done.returncode != 0
    assert "variable 'only_here' (float32, shape (), number 1 of its kind) that rank 1 creates at" in done.stderr
    assert "script.py:5" in done.stderr
    assert "rank 0 has ended" in done.stderr


@pytest.mark.long
def test_a_variable_that_rank_0_makes_too_late(launch):
    body = "if dp.rank() == 1:\n    tf.Variable(1.0, name='early')\ndp.barrier()\n"
    done = launch(2, HEAD + body, TFDP_STALL_SECONDS="3")
    assert done.returncode != 0
    # Either rank's limit may end first; both say who waits for what.
    assert "'early'" in done.stderr or "barrier" in done.stderr


def test_work_on_rank_0_that_fails_ends_the_job(launch):
    body = "def work():\n    raise OSError('disk full')\ndp.on_root(work)\nprint('went on')\n"
    done = launch(2, HEAD + body)
    assert done.returncode == 1
    assert "OSError: disk full" in done.stderr
    assert "went on" not in done.stdout


@pytest.mark.long
def test_work_on_rank_0_that_ends_the_process(launch):
    done = launch(2, HEAD + "import os\ndp.on_root(lambda: os._exit(7))\n")
    assert done.returncode == 7


@pytest.mark.long
def test_work_on_rank_0_may_take_longer_than_the_stall_limit(launch):
    body = (
        "import threading\n"
        "def work():\n"
        "    threading.Event().wait(4)\n"
        "    return 'done'\n"
        "print(dp.on_root(work), dp.rank())\n"
    )
    done = launch(2, HEAD + body, TFDP_STALL_SECONDS="2")
    assert done.returncode == 0, done.stderr
    assert "done 0" in done.stdout
    assert "done 1" in done.stdout


LOOP = (
    HEAD
    + """
import sys
data = dp.shard(tf.data.Dataset.range(64)).batch(8)
weight = tf.Variable(1.0)
for x in data:
    if len(x) < int(sys.argv[1]):
        continue
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(weight * tf.cast(x, tf.float32))
    gradient = dp.DistributedGradientTape(tape).gradient(loss, weight)
print("end", flush=True)
dp.barrier()  # the first that ends as failed has the others stopped
"""
)


@pytest.mark.long
def test_a_loop_that_never_takes_a_step_fails(launch):
    done = launch(2, LOOP, "12")
    assert done.returncode == 1
    assert done.stdout.count("end") == 2
    assert "script.py:6 were read to the end, and no training step was ever taken" in done.stderr


@pytest.mark.long
def test_one_that_takes_some_does_not(launch):
    done = launch(2, LOOP, "8")
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_nor_does_one_that_fails_or_leaves_the_loop(launch):
    done = launch(2, LOOP.replace("continue", "raise ValueError('short')"), "12")
    assert "ValueError: short" in done.stderr
    assert "no training step" not in done.stderr
    done = launch(2, LOOP.replace("continue", "break"), "12")
    assert done.returncode == 0, done.stderr


FIT = """
import sys
import keras, numpy as np, tensorflow as tf, tfdp.runtime as dp
dp.init()
x = np.ones((20, 3), "float32")
data = dp.shard(tf.data.Dataset.from_tensor_slices((x, x[:, :1]))).batch(int(sys.argv[1]), drop_remainder=True)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile(dp.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse")
model.fit(data, epochs=2, verbose=0, callbacks=dp.fit_callbacks())
print("end", flush=True)
"""


def test_a_fit_that_never_takes_a_step_fails(launch):
    done = launch(2, FIT, "12")
    assert done.returncode == 1
    assert "end" not in done.stdout
    # The second is Keras 2's own.
    said = "script.py:9 took no training step on any rank", "ValueError: Expected input data to be non-empty"
    assert any(each in done.stderr for each in said), done.stderr
    assert launch(2, FIT, "10").stdout.count("end") == 2
