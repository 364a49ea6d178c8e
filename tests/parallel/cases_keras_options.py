"""dp.DistributedOptimizer with mixed precision, several passes per step, sparse gradients; and what is stopped."""

import os
import tempfile

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

keras = tf.keras
KERAS_3 = hasattr(keras, "version") and keras.version().startswith("3")
RANKS = (2,)
DEVICE_RANKS = (2,)


def same_everywhere(values):
    for each in values:
        every = dp.allgather(tf.reshape(tf.cast(each, tf.float64), [1, -1])).numpy()
        assert (every == every[0]).all(), every


def dense_model():
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)])


def scale_of(optimizer):
    scale = getattr(optimizer, "dynamic_scale", None)
    return float(np.asarray(optimizer.loss_scale if scale is None else scale))


def around(inner):
    """A LossScaleOptimizer of this Keras."""
    if KERAS_3:
        return keras.optimizers.LossScaleOptimizer(inner)
    return keras.mixed_precision.LossScaleOptimizer(inner)


def kinds():
    yield lambda: keras.optimizers.SGD(0.5)
    if not KERAS_3:
        yield lambda: keras.optimizers.legacy.SGD(0.5)


def case_an_infinity_on_one_rank_makes_all_skip():
    for make in kinds():
        for optimizer in (around(dp.DistributedOptimizer(make())), dp.DistributedOptimizer(around(make()))):
            variable = tf.Variable([1.0, 2.0])
            if KERAS_3:
                optimizer.build([variable])

            def update(value, optimizer=optimizer, variable=variable):
                gradient = tf.stack([value, 1.0])
                gradient = gradient * optimizer.dynamic_scale if KERAS_3 else gradient
                optimizer.apply_gradients([(gradient, variable)])

            compiled = tf.function(update)
            before = None
            for function in (update, compiled):
                function(tf.constant(float(dp.rank())))
                scale = scale_of(optimizer)
                assert before is None or scale == before
                for _ in range(3):
                    function(tf.constant(float("inf") if dp.rank() == 1 else 1.0))
                before = scale_of(optimizer)
                assert before == scale / 8
            mean = (dp.size() - 1) / 2
            np.testing.assert_allclose(variable.numpy(), [1 - mean, 1.0], rtol=1e-6)
            # Keras 2 counts skipped steps too.
            assert int(optimizer.iterations.numpy()) == (2 if KERAS_3 else 8)


def case_fit_in_mixed_float16_with_a_rank_that_overflows():
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = dense_model()
        random = np.random.default_rng(dp.rank())
        x = random.normal(size=(8, 4, 3)).astype("float32")
        x[2:5, :, 0] = np.inf if dp.rank() == 1 else 1.0
        model.compile(optimizer=dp.DistributedOptimizer(keras.optimizers.Adam(0.01)), loss="mse")
        start = model.get_weights()
        model.fit(x.reshape(32, 3), np.ones((32, 1)), batch_size=4, shuffle=False, verbose=0)
        assert all(np.isfinite(each).all() for each in model.get_weights())
        assert any((one != other).any() for one, other in zip(model.get_weights(), start, strict=True))
        same_everywhere(model.get_weights())
        same_everywhere([scale_of(model.optimizer), model.optimizer.iterations])
        # Of the first steps some overflow everywhere, until the scale suits the model.
        assert int(model.optimizer.iterations.numpy()) <= 5 or not KERAS_3
        assert scale_of(model.optimizer) <= 2**12
    finally:
        keras.mixed_precision.set_global_policy("float32")


def case_fit_in_mixed_bfloat16():
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = dense_model()
        model.compile(optimizer=dp.DistributedOptimizer("adam"), loss="mse")
        model.fit(np.random.default_rng(dp.rank()).normal(size=(8, 3)), np.ones((8, 1)), batch_size=4, verbose=0)
        same_everywhere(model.get_weights())
    finally:
        keras.mixed_precision.set_global_policy("float32")


def case_passes_are_added_up_and_exchanged_once():
    rows = {0: [[0, 2], [2, 3]], 1: [[1, 2], [0, 0]]}[dp.rank() % 2]
    for mean in (False, True):
        for compiled in (False, True):
            table, dense = tf.Variable(tf.zeros([4, 2])), tf.Variable([1.0])
            unused = tf.Variable([5.0])
            optimizer = dp.DistributedOptimizer(
                keras.optimizers.SGD(1.0), backward_passes_per_step=2, average_aggregated_gradients=mean
            )

            def update(value, indices, held=(table, dense, unused), optimizer=optimizer):
                sparse = tf.IndexedSlices(tf.ones([2, 2]) * value, indices, tf.constant([4, 2]))
                optimizer.apply_gradients(zip([sparse, tf.reshape(value, [1]), None], held, strict=True))

            step = tf.function(update) if compiled else update
            for turn in range(3):
                step(tf.constant(float(dp.rank() + 1)), tf.constant(rows[turn % 2]))
                assert int(optimizer.iterations.numpy()) == turn + 1
                assert (dense.numpy() == 1.0).all() == (turn == 0)
            share = 1 / dp.size() / (2 if mean else 1)
            want = np.zeros((4, 2))
            for rank, lists in enumerate([[[0, 2], [2, 3]], [[1, 2], [0, 0]]]):
                for row in lists[0] + lists[1]:
                    want[row] -= (rank + 1) * share
            np.testing.assert_allclose(table.numpy(), want, rtol=1e-6)
            np.testing.assert_allclose(dense.numpy(), [1 - 2 * 3 * share], rtol=1e-6)
            assert unused.numpy() == 5.0


def case_passes_within_a_loss_scale():
    optimizer = around(dp.DistributedOptimizer(keras.optimizers.SGD(0.5), backward_passes_per_step=2))
    variable = tf.Variable([1.0])

    @tf.function
    def update(value):
        gradient = tf.reshape(value, [1]) * (optimizer.dynamic_scale if KERAS_3 else 1.0)
        optimizer.apply_gradients([(gradient, variable)])

    if KERAS_3:
        optimizer.build([variable])
    for value in (1.0, float(dp.rank()), 1.0, float("inf") if dp.rank() else 1.0, 1.0, 1.0):
        update(tf.constant(value))
    np.testing.assert_allclose(variable.numpy(), [1 - 0.5 * 1.5 - 0.5 * 2], rtol=1e-6)


def case_kerass_own_accumulation():
    if not KERAS_3:
        return
    optimizer = dp.DistributedOptimizer(keras.optimizers.SGD(1.0, gradient_accumulation_steps=2, clipvalue=1.0))
    variable = tf.Variable([0.0, 0.0])
    step = tf.function(lambda value: optimizer.apply_gradients([(value, variable)]))
    for value in ([1.0, 4.0], [1.0, 0.0]):
        step(tf.constant(value) * dp.rank())
    # Clipped is the mean over ranks and passes.
    np.testing.assert_allclose(variable.numpy(), [-0.5, -1.0], rtol=1e-6)


def case_options_reach_the_exchange():
    given = tf.constant([1.0, 1.0001]) * (dp.rank() + 1)
    cases = {
        "sum": ({"op": dp.Sum}, given / (dp.rank() + 1) * 3),
        "fp16": ({"compression": dp.Compression.fp16}, tf.constant([1.5, 1.5])),
        "predivided": ({"gradient_predivide_factor": 2.0}, tf.constant([1.5, 1.50015])),
    }
    for options, want in cases.values():
        variable = tf.Variable([0.0, 0.0])
        dp.DistributedOptimizer(keras.optimizers.SGD(1.0), **options).apply_gradients([(given, variable)])
        np.testing.assert_allclose(variable.numpy(), -want, rtol=1e-6)
    table = tf.Variable(tf.zeros([3, 1]))
    adam = keras.optimizers.Adam(0.1) if KERAS_3 else keras.optimizers.legacy.Adam(0.1)
    slices = tf.IndexedSlices(tf.ones([1, 1]), tf.constant([dp.rank()]), tf.constant([3, 1]))
    dp.DistributedOptimizer(adam, sparse_as_dense=True).apply_gradients([(slices, table)])
    np.testing.assert_allclose(table.numpy()[:, 0], [-0.1, -0.1, 0.0], rtol=1e-4)


def case_a_loaded_model_is_not_trained_without_averaging():
    path = os.path.join(tempfile.mkdtemp(), "model.keras")
    model = dense_model()
    model.compile(optimizer=dp.DistributedOptimizer("adam"), loss=keras.losses.MeanSquaredError())
    x, y = np.ones((4, 3)), np.zeros((4, 1))
    model.train_on_batch(x, y)
    model.save(path)
    loaded = keras.models.load_model(path)
    for train in (loaded.fit, loaded.train_on_batch):
        with pytest.raises(dp.TfdpError, match=r"cases_keras_options.* without averaging.*dp\.DistributedOptimizer"):
            train(x, y)
    assert dp.DistributedOptimizer(loaded.optimizer) is loaded.optimizer
    loaded.fit(x * dp.rank(), y, verbose=0)
    assert int(loaded.optimizer.iterations.numpy()) == 2
    same_everywhere(loaded.get_weights())


class OwnStep(keras.Model):
    def __init__(self, average):
        super().__init__()
        self.dense, self.average, self.other = keras.layers.Dense(1), average, keras.optimizers.SGD(0.1)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            value = tf.reduce_mean((self(x) - y) ** 2)
        tape = dp.DistributedGradientTape(tape) if self.average else tape
        variables = self.trainable_variables
        self.other.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        return {"loss": value}


def case_a_train_step_that_averages_nothing_is_stopped():
    x, y = np.ones((4, 3), "float32") * dp.rank(), np.zeros((4, 1), "float32")
    for options in ({}, {"run_eagerly": True}):
        model = OwnStep(average=False)
        model.compile(**options)
        with pytest.raises(dp.TfdpError, match="by its own train_step without averaging"):
            model.fit(x, y, verbose=0)
        model = OwnStep(average=True)
        model.compile(**options)
        model.fit(x, y, epochs=2, verbose=0)
        same_everywhere(model.get_weights())


def case_xla_is_left_out():
    model = dense_model()
    model.compile(optimizer=dp.DistributedOptimizer("sgd"), loss="mse", jit_compile=True)
    model.fit(np.ones((4, 3)), np.zeros((4, 1)), verbose=0)
    assert not model.jit_compile
    same_everywhere(model.get_weights())


def case_minimize_in_keras_2():
    if KERAS_3:
        return
    for make in kinds():
        variable = tf.Variable(1.0)
        optimizer = dp.DistributedOptimizer(make())
        x = float(dp.rank())
        optimizer.minimize(lambda variable=variable, x=x: variable * x, [variable])
        with tf.GradientTape() as tape:
            value = variable * x
        optimizer.minimize(value, [variable], tape=tape)
        options = [{"experimental_aggregate_gradients": False}]
        if "legacy" not in type(optimizer).__module__:
            options.append({"skip_gradients_aggregation": True})
        for option in options:
            optimizer.apply_gradients([(tf.constant(x), variable)], **option)
        np.testing.assert_allclose(variable.numpy(), 1 - 0.25 * (2 + len(options)), rtol=1e-6)
