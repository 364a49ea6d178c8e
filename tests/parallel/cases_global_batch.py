"""Losses that are functions of sums over the batch: on several ranks those of the global batch, and their gradients."""

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

keras = tf.keras
RANKS = (2, 3)
DEVICE_RANKS = (2,)
STEPS, LOCAL = 3, 4


def example_rows():
    """All ranks' features and labels, of which each step takes some; masks leave another share on every rank."""
    rng = np.random.default_rng(11)
    rows = STEPS * LOCAL * dp.size()
    x = rng.normal(size=(rows, 5)).astype(np.float32)
    y = (rng.uniform(size=(rows, 3)) < np.linspace(0.1, 0.9, rows)[:, None]).astype(np.float32)
    return x, y


def own(array):
    """This rank's part of each step, with the records sharded one by one."""
    return array[dp.rank() :: dp.size()]


def dice(y, p, total=tf.reduce_sum):
    both, all_of_them = total(y * p), total(y) + total(p)
    return 1.0 - (2.0 * both + 1.0) / (all_of_them + 1.0)


def global_dice(y, p):
    return dice(y, p, lambda value: dp.global_sum(tf.reduce_sum(value)))


def masked(y, p):
    return tf.reduce_sum(tf.square(y - p) * y) / tf.reduce_sum(y)


def global_masked(y, p):
    return tf.reduce_sum(tf.square(y - p) * y) / dp.global_mean(tf.reduce_sum(y))


def of_a_mean(y, p):
    return tf.exp(-tf.reduce_mean(tf.square(y - p)))


def global_of_a_mean(y, p):
    return tf.exp(-dp.global_mean(tf.reduce_mean(tf.square(y - p))))


PAIRS = ((dice, global_dice), (masked, global_masked), (of_a_mean, global_of_a_mean))


def weights():
    rng = np.random.default_rng(5)
    return [tf.Variable(rng.normal(size=shape).astype(np.float32) / 2) for shape in ((5, 3), (3,))]


def predicted(variables, x):
    return tf.sigmoid(tf.matmul(x, variables[0]) + variables[1])


def case_gradients_are_those_of_the_global_batch():
    x, y = example_rows()
    variables = weights()
    for plain, shared in PAIRS:

        def local_gradients(shared=shared):
            with tf.GradientTape() as tape:
                loss = shared(own(y), predicted(variables, own(x)))
            return loss, dp.DistributedGradientTape(tape).gradient(loss, variables)

        with tf.GradientTape() as tape:
            loss = plain(y, predicted(variables, x))
        expected = tape.gradient(loss, variables)
        for step in (local_gradients, tf.function(local_gradients)):
            found_loss, found = step()
            mean_loss = dp.allreduce(found_loss)
            np.testing.assert_allclose(mean_loss, loss, rtol=1e-6, err_msg=plain.__name__)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-7, err_msg=plain.__name__)


def case_gradients_of_a_function_that_is_compiled_alone():
    """The tape is outside: the gradients of its sums are a graph of their own, without an order but the one given."""
    x, y = example_rows()
    variables = weights()
    compiled = tf.function(global_dice)
    with tf.GradientTape() as tape:
        loss = dice(y, predicted(variables, x))
    expected = tape.gradient(loss, variables)
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = compiled(own(y), predicted(variables, own(x)))
        found = dp.DistributedGradientTape(tape).gradient(loss, variables)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-7)


def case_without_a_tape_a_rank_may_call_them_alone():
    x, y = example_rows()
    variables = weights()
    if dp.rank() == 0:
        for plain, shared in PAIRS:
            expected = plain(own(y), predicted(variables, own(x)))
            assert shared(own(y), predicted(variables, own(x))).numpy() == expected.numpy()
            assert tf.function(shared)(own(y), predicted(variables, own(x))).shape == ()
            with tf.GradientTape() as tape, tape.stop_recording():
                assert shared(own(y), predicted(variables, own(x))).numpy() == expected.numpy()


def case_fit_with_such_a_loss():
    x, y = example_rows()
    for plain, shared in PAIRS:
        variables = weights()
        for step in range(STEPS):
            rows = slice(step * LOCAL * dp.size(), (step + 1) * LOCAL * dp.size())
            with tf.GradientTape() as tape:
                loss = plain(y[rows], predicted(variables, x[rows]))
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(0.5 * gradient)

        model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3, activation="sigmoid")])
        model.set_weights([variable.numpy() for variable in weights()])
        optimizer = dp.DistributedOptimizer(keras.optimizers.SGD(0.5))
        model.compile(optimizer, loss=shared, metrics=[shared])
        data = tf.data.Dataset.from_tensor_slices((own(x), own(y))).batch(LOCAL)
        logs = model.fit(data, verbose=0, shuffle=False, callbacks=dp.fit_callbacks(), validation_data=data).history
        for a, b in zip(model.get_weights(), variables, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6, err_msg=plain.__name__)
        assert len(logs["val_loss"]) == 1
        if dp.rank() == 0:  # no tape records here
            alone = model.evaluate(data, verbose=0, return_dict=True)["loss"]
            batches = [plain(b, predicted([*map(tf.constant, model.get_weights())], a)) for a, b in data]
            np.testing.assert_allclose(alone, np.mean(batches), rtol=1e-5)


def case_integers_have_no_mean():
    assert int(dp.global_sum(tf.constant(2))) == 2
    with tf.GradientTape():
        assert int(dp.global_sum(tf.constant(2))) == 2 * dp.size()
    with pytest.raises(TypeError, match=r"global_mean of int32 .*tf\.cast"):
        dp.global_mean(tf.constant(2))
