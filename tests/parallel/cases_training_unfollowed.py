"""Without the same start: the ranks do differ, which the other files' cases would otherwise not show."""

import random

import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (2,)
INIT = {"same_start": False}

random.seed(100 + dp.rank())


def differ(value):
    by_rank = dp.allgather(tf.convert_to_tensor(value)[tf.newaxis]).numpy()
    return by_rank[0].tobytes() != by_rank[1].tobytes()


def model_and_gradient():
    model = tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        return loss, dp.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)

    return model, step


def case_the_ranks_start_differently():
    assert differ(tf.Variable(tf.random.normal([3])))
    model, _ = model_and_gradient()
    assert differ(model(tf.ones([2, 4])))


def case_the_first_gradient_says_so():
    _, step = model_and_gradient()
    with pytest.raises(tf.errors.UnknownError, match=r"kernel.* and 1 more variable differ on rank\(s\) 1"):
        step(tf.ones([2, 4]))


def case_broadcast_state_mends_it():
    model, step = model_and_gradient()
    model(tf.ones([2, 4]))
    dp.broadcast_state(model)
    loss, gradients = step(tf.ones([2, 4]))
    assert not differ(loss)
    assert not any(differ(each) for each in gradients)


def case_broadcast_state_must_be_told_of_what():
    with pytest.raises(dp.TfdpError, match="name the models and optimizers"):
        dp.broadcast_state()
