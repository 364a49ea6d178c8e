"""A model that mixes the examples of a batch is not trained: each rank sees only its own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

DEVICE_RANKS = ()


class Centred(keras.layers.Layer):
    def call(self, h):
        return h - tf.reduce_mean(h, axis=0)


def model_of(middle, rows=None):
    inputs = keras.Input((5,), batch_size=rows)
    return keras.Model(inputs, keras.layers.Dense(1)(middle(keras.layers.Dense(4)(inputs))))


def data():
    random = np.random.default_rng([3, dp.rank()])
    return random.normal(size=[32, 5]).astype(np.float32), random.normal(size=[32, 1]).astype(np.float32)


def fitted(model, **options):
    model.compile(dp.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse", **options)
    x, y = data()
    model.fit(x, y, batch_size=8, verbose=0, callbacks=dp.fit_callbacks())


def stepped(model, compiled):
    optimizer = keras.optimizers.SGD(0.1)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        gradients = dp.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    if compiled:
        step = tf.function(step)
    for _ in range(2):
        step(*map(tf.constant, data()))


def refused(call):
    # AutoGraph wraps what is raised while a function is traced.
    with pytest.raises(Exception, match="mixes the examples of a batch when it predicts") as caught:
        call()
    assert "cases_training_rows.py" in str(caught.value)


def case_a_model_that_mixes_rows_is_refused_by_its_first_exchange():
    for rows in (None, 8):
        refused(lambda rows=rows: fitted(model_of(Centred(), rows)))
    refused(lambda: fitted(model_of(Centred()), run_eagerly=True))
    for compiled in (True, False):
        refused(lambda compiled=compiled: stepped(model_of(Centred()), compiled))


def case_sound_models_train():
    for middle in (keras.layers.BatchNormalization(), keras.layers.Dropout(0.5), keras.layers.LayerNormalization()):
        fitted(model_of(middle))
        stepped(model_of(middle), True)


def case_one_that_is_only_called_and_not_trained_may_mix():
    whole, trained = model_of(Centred()), model_of(keras.layers.ReLU())
    x, _ = data()
    assert whole(x).shape == (32, 1)
    fitted(trained)


def case_a_model_built_by_its_first_call_is_looked_at_too():
    def made():
        return keras.Sequential([keras.layers.Dense(4), Centred(), keras.layers.Dense(1)])

    refused(lambda: fitted(made()))
    refused(lambda: stepped_unbuilt(made()))


def stepped_unbuilt(model):
    step = tf.function(lambda x, y: train(model, x, y))
    for _ in range(3):
        step(*map(tf.constant, data()))


def train(model, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    gradients = dp.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        variable.assign_sub(0.1 * gradient)


class CodeBook(keras.layers.Layer):
    """Moves a variable by its own examples while it is trained; `read` says whether it uses it then."""

    def __init__(self, read):
        super().__init__()
        self.read = read
        self.code = self.add_weight(shape=(4,), initializer="zeros", trainable=False, name="code")

    def call(self, h, training=None):
        if training:
            self.code.assign(0.9 * self.code + 0.1 * tf.reduce_mean(tf.stop_gradient(h), axis=0))
        return h - self.code if self.read or not training else h


def case_a_code_book_that_moves_by_own_examples_is_named_before_the_epoch_ends():
    ended = []
    model = model_of(CodeBook(read=True))
    model.compile(dp.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse")
    noted = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: ended.append(1))
    x, y = data()
    with pytest.raises(dp.TfdpError, match=r"code\S* of the model trained at .*cases_training_rows.py.* differs"):
        model.fit(x, y, batch_size=8, epochs=3, verbose=0, callbacks=dp.fit_callbacks([noted]))
    assert not ended


def case_statistics_that_only_predictions_read_are_rank_0s():
    model = model_of(CodeBook(read=False))
    fitted(model)
    code = model.layers[2].code.numpy()
    assert (dp.allgather(tf.constant(code[None])).numpy() == code).all()
    assert code.any()
