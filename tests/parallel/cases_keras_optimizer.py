"""dp.DistributedOptimizer in Keras' `fit` and beside it, against one process that has all ranks' examples."""

import copy

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

keras = tf.keras
RANKS = (3,)
LOCAL = 4


def layers():
    return [
        keras.layers.Dense(8, activation="tanh", kernel_regularizer=keras.regularizers.L2(0.01)),
        keras.layers.Dense(3),
    ]


def model_of(*parts, features=5):
    model = keras.Sequential([keras.Input((features,)), *(parts or layers())])
    model.build((None, features))
    return model


def records(count, features=5):
    random = np.random.default_rng(5)
    return random.normal(size=(count, features)).astype("float32"), random.integers(0, 3, count)


def mine(*arrays):
    return [array[dp.rank() :: dp.size()] for array in arrays]


def loss():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def one_process(model, optimizer, x, y, *, batch):
    """The same model trained on all examples by a plain loop; gives the weights."""
    twin = keras.models.clone_model(model)
    twin.build(model.input_shape)
    twin.set_weights(model.get_weights())
    criterion = loss()
    for start in range(0, len(x), batch):
        with tf.GradientTape() as tape:
            value = criterion(y[start : start + batch], twin(x[start : start + batch], training=True))
            value = tf.add_n([value, *twin.losses])
        variables = twin.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
    return twin.get_weights()


def close(found, want, tolerance=2e-6):
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance * 10, atol=tolerance)


def same_everywhere(model):
    for each in model.get_weights():
        every = dp.allgather(tf.reshape(each, [1, -1])).numpy()
        assert (every == every[0]).all()


# By Keras' own epsilon an update is that of the rounding where a gradient is one: in 2 of 3000 trainings from random
# values more than `close` allows, in one process as well.
OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "clipped adam": lambda: keras.optimizers.Adam(0.01, epsilon=1e-3, global_clipnorm=0.05),
    "adamw": lambda: keras.optimizers.AdamW(0.01, epsilon=1e-3, weight_decay=0.1),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.01, epsilon=1e-3),
}


def case_fit_trains_the_model_that_one_process_trains():
    for make in OPTIMIZERS.values():
        x, y = records(LOCAL * dp.size() * 4)
        model = model_of()
        want = one_process(model, make(), x, y, batch=LOCAL * dp.size())
        model.compile(optimizer=dp.DistributedOptimizer(make()), loss=loss())
        model.fit(*mine(x, y), batch_size=LOCAL, shuffle=False, verbose=0)
        close(model.get_weights(), want)
        same_everywhere(model)


def case_fit_eagerly_and_in_several_steps_at_a_time():
    for options in ({"run_eagerly": True}, {"steps_per_execution": 3}):
        x, y = records(LOCAL * dp.size() * 4)
        model = model_of()
        want = one_process(model, OPTIMIZERS["sgd"](), x, y, batch=LOCAL * dp.size())
        model.compile(optimizer=dp.DistributedOptimizer(OPTIMIZERS["sgd"]()), loss=loss(), **options)
        model.fit(*mine(x, y), batch_size=LOCAL, shuffle=False, verbose=0)
        close(model.get_weights(), want)


def case_train_on_batch_and_a_copied_optimizer():
    x, y = records(LOCAL * dp.size() * 2)
    model = model_of()
    want = one_process(model, OPTIMIZERS["clipped adam"](), x, y, batch=LOCAL * dp.size())
    first = dp.DistributedOptimizer(OPTIMIZERS["clipped adam"]())
    # Keras 2 cannot copy its optimizers.
    model.compile(optimizer=copy.deepcopy(first) if hasattr(first, "stateless_apply") else first, loss=loss())
    half = LOCAL * dp.size()
    for part in (slice(0, half), slice(half, None)):
        model.train_on_batch(*mine(x[part], y[part]))
    close(model.get_weights(), want)
    assert model.optimizer is first or int(first.iterations.numpy()) == 0
    assert int(model.optimizer.iterations.numpy()) == 2


def case_a_custom_train_step_and_apply_gradients():
    class Custom(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = model_of()

        def call(self, x, training=False):
            return self.inner(x, training=training)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                value = tf.add_n([loss()(y, self(x, training=True)), *self.losses])
            gradients = tape.gradient(value, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": value}

    x, y = records(LOCAL * dp.size() * 3)
    model = Custom()
    want = one_process(model.inner, OPTIMIZERS["adamw"](), x, y, batch=LOCAL * dp.size())
    model.compile(optimizer=dp.DistributedOptimizer(OPTIMIZERS["adamw"]()))
    model.fit(*mine(x, y), batch_size=LOCAL, shuffle=False, verbose=0)
    close(model.inner.get_weights(), want)


def case_folds_start_alike_on_all_ranks_and_end_as_in_one_process():
    starts = []
    for fold in range(3):
        keras.backend.clear_session()
        x, y = records(LOCAL * dp.size() * 3)
        model, optimizer = model_of(), OPTIMIZERS["clipped adam"]()
        same_everywhere(model)
        starts.append(model.get_weights()[0].tobytes())
        held_out = np.arange(len(x)) % 3 == fold
        rest = ~held_out
        want = one_process(model, OPTIMIZERS["clipped adam"](), x[rest], y[rest], batch=LOCAL * dp.size())
        model.compile(optimizer=dp.DistributedOptimizer(optimizer), loss=loss())
        model.fit(*mine(x[rest], y[rest]), batch_size=LOCAL, shuffle=False, verbose=0)
        close(model.get_weights(), want)
        same_everywhere(model)
    assert len(set(starts)) == 3, "each fold starts with its own values"


def case_names_and_configurations():
    for given in ("sgd", "SGD", keras.optimizers.serialize(keras.optimizers.SGD())):
        x, y = records(LOCAL * dp.size() * 2)
        model = model_of()
        want = one_process(model, keras.optimizers.SGD(), x, y, batch=LOCAL * dp.size())
        model.compile(optimizer=dp.DistributedOptimizer(given), loss=loss())
        model.fit(*mine(x, y), batch_size=LOCAL, shuffle=False, verbose=0)
        close(model.get_weights(), want)


def case_a_tape_that_averages_too_is_refused():
    model = model_of()
    x, y = mine(*records(LOCAL * dp.size()))
    optimizer = dp.DistributedOptimizer(keras.optimizers.SGD(0.1))
    before = model.get_weights()

    def step(clip):
        with tf.GradientTape() as tape:
            value = loss()(y, model(x))
        gradients = dp.DistributedGradientTape(tape).gradient(value, model.trainable_variables)
        gradients = [tf.clip_by_norm(each, 1.0) if clip else each for each in gradients]
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    for function in (step, tf.function(step)):
        for clip in (False, True):
            with pytest.raises(TypeError, match="averaged by a DistributedGradientTape"):
                function(clip)
    close(model.get_weights(), before, 0)


def case_a_rank_that_starts_elsewhere_is_an_error():
    model = model_of()
    model.layers[-1].bias.assign_add(tf.ones(3) * dp.rank())
    model.compile(optimizer=dp.DistributedOptimizer("sgd"), loss=loss())
    with pytest.raises((dp.TfdpError, tf.errors.UnknownError), match=r"bias.* differs? on rank\(s\) 1"):
        # Not by `fit`: where its iterator is slow, TensorFlow may say that this was cancelled, and not by what.
        model.train_on_batch(*mine(*records(LOCAL * dp.size())))


def case_an_optimizer_that_one_rank_has_made_before_is_an_error():
    variable = tf.Variable([1.0, 2.0])
    optimizer = dp.DistributedOptimizer(keras.optimizers.Adam())
    if dp.rank() == 0:
        optimizer.build([variable])
    with pytest.raises((dp.TfdpError, tf.errors.UnknownError), match=rf"rank {dp.rank()} holds \d+: .*all ranks"):
        optimizer.apply_gradients([(tf.ones(2), variable)])


def case_a_rank_that_traces_again_alone():
    optimizer = dp.DistributedOptimizer(keras.optimizers.Adam(0.125))
    variable = tf.Variable([0.0])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            value = tf.reduce_mean(variable * x)
        optimizer.apply_gradients(zip(tape.gradient(value, [variable]), [variable], strict=True))

    for rows in (2, 3 if dp.rank() == 1 else 2, 2):
        step(tf.ones([rows]))
    close([variable.numpy()], [np.array([-0.375])])
