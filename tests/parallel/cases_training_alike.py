"""Variables that only rank 0 makes, as many and as large as those that all ranks make next."""

import tempfile

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)
APART = True


def features():
    return tf.constant(np.random.default_rng(3).normal(size=(8, 5)), tf.float32)


def keras_model():
    layers = [
        tf.keras.layers.Dense(7, activation="relu"),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dense(2),
    ]
    return tf.keras.Sequential(layers)


def assert_equal_on_ranks(value):
    by_rank = dp.allgather(tf.expand_dims(value, 0)).numpy()
    assert all(other.tobytes() == by_rank[0].tobytes() for other in by_rank), by_rank


def case_what_rank_0_makes_alone_holds_nobody_up():
    model = keras_model()
    model(features())
    if dp.rank() == 0:
        with tempfile.TemporaryDirectory() as folder:
            tf.train.Checkpoint(model=model).save(f"{folder}/alone")
        # As many and as large as the model that all ranks make next, with names that Keras counts on.
        keras_model()
        tf.keras.optimizers.Adam(0.1).build([tf.Variable(tf.ones([2]), name="alone")])
    dp.barrier()
    second, optimizer = keras_model(), tf.keras.optimizers.Adam(0.01)
    second(features())
    optimizer.build(second.trainable_variables)
    assert_equal_on_ranks(second(features()))


def case_a_model_that_rank_0_builds_alone_is_found_by_the_first_gradient():
    if dp.rank() == 0:
        keras_model()(features())
    model = keras_model()
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(features()) ** 2)
    with pytest.raises(dp.TfdpError, match=r"kernel.* differs? on rank.*broadcast_state"):
        dp.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
    dp.broadcast_state(model)
    assert_equal_on_ranks(model(features()))
