"""Sharded calls: a layer that has other settings on one worker is not divided as if it had the same."""

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp
from tfdp.runtime.calls import swallowed

DEVICE_RANKS = ()
INIT = {"shard_calls": True}
APART = True  # sharded calls change what later cases would meet

ROWS = tf.constant(np.random.RandomState(2).normal(size=(8, 3)))
L = tf.keras.layers


def trained(rate, negative_slope=0.1):
    """One step of a model whose layers have these settings."""
    tf.keras.utils.set_random_seed(3)
    net = tf.keras.Sequential([L.Dense(4, dtype="float64"), L.LeakyReLU(negative_slope, dtype="float64")])
    net.add(L.Dropout(rate, dtype="float64"))
    net.add(L.Dense(1, dtype="float64"))
    net(ROWS[:1])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(net(ROWS, training=True) ** 2)
    return dp.allreduce(tape.gradient(loss, net.trainable_variables)[0], name="gradient")


def case_equal_settings_are_no_alarm():
    assert trained(0.5).shape == (3, 4)


def case_a_number_of_one_worker_alone_is_seen():
    for settings in ({"rate": 0.5 + 0.1 * dp.rank()}, {"rate": 0.5, "negative_slope": 0.1 * dp.rank()}):
        with pytest.raises(dp.TfdpError, match="differs between rank 0"):
            trained(**settings)
        swallowed.forget()
