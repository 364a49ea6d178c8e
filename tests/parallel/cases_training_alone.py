"""Variables that only rank 0 makes, before, during and after training; restores and sessions in between."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)
APART = True


def features():
    return tf.constant(np.random.default_rng([5, dp.rank()]).normal(size=(8, 5)), tf.float32)


def build(hidden=4, outputs=1):
    model = tf.keras.Sequential([tf.keras.layers.Dense(hidden, activation="relu"), tf.keras.layers.Dense(outputs)])
    return model, tf.keras.optimizers.Adam(0.01)


def trainer(model, optimizer):
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - 1.0) ** 2)
        gradients = dp.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def alone():
    """What a guarded block may make: averages, metrics, another model (of other shapes) with its optimizer."""
    if dp.rank() == 0:
        model, optimizer = build(6, 2)
        model(features())
        optimizer.build(model.trainable_variables)
        return [model, optimizer, tf.Variable(tf.random.normal([5, 4])), tf.keras.metrics.Mean()]
    return []


def held(model, optimizer):
    slots = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    return [*model.variables, *slots]


def assert_equal_on_ranks(values):
    for value in values:
        by_rank = dp.allgather(tf.expand_dims(tf.convert_to_tensor(value), 0)).numpy()
        assert all(other.tobytes() == by_rank[0].tobytes() for other in by_rank), by_rank


def case_rank_0_makes_variables_before_during_and_after_training():
    kept = [alone()]
    model, optimizer = build()
    step = trainer(model, optimizer)
    for number in range(4):
        step(features())
        assert_equal_on_ranks(held(model, optimizer))
        if number < 3:
            kept.append(alone())
    # Made by all ranks from now on: they find rank 0's values although rank 0 alone has made as many like them.
    later = tf.Variable(tf.random.normal([3, 3]), name="later")
    assert_equal_on_ranks([later])


def case_what_rank_0_saves_all_ranks_restore():
    folder = dp.on_root(tempfile.mkdtemp)
    model, optimizer = build()
    step = trainer(model, optimizer)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    for _ in range(2):
        step(features())
        if dp.rank() == 0:
            # It creates a counter on rank 0, and then a file.
            path = checkpoint.save(str(pathlib.Path(folder, "train")))
    path = dp.broadcast_object(path if dp.rank() == 0 else None)
    saved = [np.array(each) for each in held(model, optimizer)]
    step(features())
    # The object that is restored into is a new one: built before, and built by its first call.
    for built in (True, False):
        again, its_optimizer = build()
        if built:
            again(features())
            its_optimizer.build(again.trainable_variables)
        status = tf.train.Checkpoint(model=again, optimizer=its_optimizer).restore(path)
        if not built:
            again(features())
            its_optimizer.build(again.trainable_variables)
        status.assert_existing_objects_matched()
        for mine, wanted in zip(held(again, its_optimizer), saved, strict=True):
            np.testing.assert_array_equal(np.array(mine), wanted)
        trainer(again, its_optimizer)(features())
        assert_equal_on_ranks(held(again, its_optimizer))


def case_a_restore_on_rank_0_alone_is_shared_out():
    model, optimizer = build()
    step = trainer(model, optimizer)
    step(features())
    if dp.rank() == 0:
        for variable in model.variables:
            variable.assign(variable + 1.0)
    wanted = [np.array(dp.broadcast(tf.convert_to_tensor(each))) for each in model.variables]
    dp.broadcast_state(model, optimizer)
    for variable, value in zip(model.variables, wanted, strict=True):
        np.testing.assert_array_equal(np.array(variable), value)
    step(features())
    assert_equal_on_ranks(held(model, optimizer))


def case_folds_with_a_new_session_each():
    ends = []
    for _ in range(3):
        tf.keras.backend.clear_session()
        model, optimizer = build()
        step = trainer(model, optimizer)
        for _ in range(2):
            step(features())
        alone()
        assert_equal_on_ranks(held(model, optimizer))
        ends.append(np.array(model.variables[0]).tobytes())
    assert len(set(ends)) == 3, "each fold starts with its own values"


def case_draws_inside_the_model_differ_and_those_for_data_do_not():
    common = np.random.permutation(50)
    assert_equal_on_ranks([common])
    for drawn in (tf.random.normal([4]), tf.function(lambda: tf.random.normal([4]))()):
        by_rank = dp.allgather(tf.expand_dims(drawn, 0)).numpy()
        assert len({row.tobytes() for row in by_rank}) == dp.size()
    tf.random.set_seed(dp.rank_seed(42))
    by_rank = dp.allgather(tf.random.normal([1, 4])).numpy()
    assert len({row.tobytes() for row in by_rank}) == dp.size()
