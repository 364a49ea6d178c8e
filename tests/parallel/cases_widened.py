"""Sharded calls with the batches of all workers: a step that takes another number of rows ends the job."""

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp
from tfdp.runtime.calls import swallowed, widened

DEVICE_RANKS = ()
INIT = {"shard_calls": True}
APART = True  # sharded calls change what later cases would meet

BATCH = 6
ROWS = np.random.RandomState(2).normal(size=(61, 3)).astype(np.float32)
CUTS = {
    "its first rows": lambda x: [x[: BATCH - 1]],
    "as many as one worker's": lambda x: [x[:BATCH]],
    "some at a time": lambda x: [x[:3], x[3:6], x[6:9]],
    "one by one": lambda x: [each[None] for each in x],
}


def model():
    net = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    return net, tf.keras.optimizers.SGD(0.1)


def data(cut=lambda x: [x]):
    """Cut after it has been put into batches."""
    for x in tf.data.Dataset.from_tensor_slices(ROWS).batch(dp.global_batch_size(BATCH)):
        yield from cut(x)


def descend(net, optimizer, x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(net(x, training=True) ** 2)
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))


def steps(cut, *, compiled):
    widened._Step.is_over = False
    net, optimizer = model()
    step = tf.function(descend, reduce_retracing=True) if compiled else descend
    for x in data(cut):
        step(net, optimizer, x)


def case_batches_of_all_workers_and_a_smaller_last_one_are_no_alarm():
    for compiled in (False, True):
        steps(lambda x: [x], compiled=compiled)
        steps(lambda x: [tf.concat([x, x], 0), x[:2]], compiled=compiled)
        assert widened._Step.is_over


def case_a_batch_that_is_cut_is_seen():
    for compiled in (False, True):
        for cut in CUTS.values():
            with pytest.raises((dp.TfdpError, tf.errors.OpError), match="a batch of all workers has"):
                steps(cut, compiled=compiled)
            swallowed.forget()


def case_fit_is_looked_at_too():
    net, optimizer = model()
    net.compile(optimizer, "mse")
    widened._Step.is_over = False
    net.fit(ROWS, ROWS[:, :1], batch_size=dp.global_batch_size(BATCH), epochs=1, verbose=0)
    assert widened._Step.is_over
    widened._Step.is_over = False
    cut = tf.data.Dataset.from_tensor_slices((ROWS, ROWS[:, :1])).batch(dp.global_batch_size(BATCH))
    with pytest.raises((dp.TfdpError, tf.errors.OpError), match="is given 5 rows in the first step"):
        net.fit(cut.map(lambda x, y: (x[:5], y[:5])), epochs=1, verbose=0)
    swallowed.forget()
