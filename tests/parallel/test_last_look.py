"""Sharded calls: variables that come apart between two fingerprints are seen at the end."""

import pytest

TRAINING = """
import numpy as np
import tensorflow as tf
import tfdp.runtime as dp

dp.init(shard_calls=True)

model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
table = tf.Variable(tf.ones([6, 3]), name="table")
optimizer = tf.keras.optimizers.SGD(0.1)
x = tf.constant(np.random.default_rng(0).normal(size=(8, 3)), tf.float32)


def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x + tf.gather(table, [0, 1, 1, 2, 2, 2, 3, 4])) - 1.0) ** 2)
    variables = [*model.trainable_variables, table]
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


for number in range(7):
    if number == 6:
        CHANGE
    step()
"""


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize(
    ("change", "which"),
    [
        ("optimizer.learning_rate.assign(0.1 * (1 + dp.rank()))", "and 2 more variables differ on rank(s) 1"),
        ("model.layers[0].bias.assign_add([float(dp.rank())])", "bias"),
        ("table.scatter_nd_add([[5]], [[float(dp.rank())] * 3])", "table"),
    ],
)
def test_a_rank_that_trains_apart_ends_the_job(launch, change, which):
    done = launch(2, TRAINING.replace("CHANGE", change))
    assert done.returncode == 1
    assert "at the end of the job: the ranks no longer trained the same model" in done.stderr, done.stderr
    assert which in done.stderr


def test_ranks_that_train_alike_end_well(launch):
    done = launch(3, TRAINING.replace("CHANGE", "optimizer.learning_rate.assign(0.2)"))
    assert done.returncode == 0, done.stderr


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_whose_script_ends_early_ends_the_job_at_once(launch, rank):
    text = TRAINING.replace("range(7)", f"range(7 + (dp.rank() == {rank}))").replace("CHANGE", "pass")
    assert f"dp.rank() == {rank}" in text
    done = launch(2, text)
    assert done.returncode == 1
    assert f"rank {1 - rank}, which has come to the end of the script and will not come" in done.stderr, done.stderr
    assert "StopIteration" not in done.stderr


@pytest.mark.long
def test_ranks_that_list_their_variables_in_another_order_end_well(launch):
    order = "variables = [*model.trainable_variables, table]"
    text = TRAINING.replace(order, f"{order}[:: 1 - 2 * dp.rank()]").replace("CHANGE", "pass")
    assert "dp.rank()" in text
    done = launch(2, text)
    assert done.returncode == 0, done.stderr


BY_TENSORS = """
import tensorflow as tf
import tfdp.runtime as dp

dp.init(shard_calls=True)

weight = tf.ones([3, 1])
for _ in range(3):
    with tf.GradientTape() as tape:
        tape.watch(weight)
        loss = tf.reduce_mean((tf.ones([8, 3]) @ weight) ** 2)
    weight -= 0.1 * tape.gradient(loss, weight)
    if dp.rank() == 0:
        print(float(loss))
"""


def test_a_job_that_divides_nothing_says_so_at_its_end(launch):
    done = launch(2, BY_TENSORS)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("nothing in this script could be sharded") == 1, done.stderr
    assert "nothing in this script" not in launch(2, TRAINING.replace("CHANGE", "pass")).stderr
