"""What the losses of fitted models are over the batch, hence how gradients are combined, or why they cannot be."""

from __future__ import annotations

import re
import textwrap

import pytest

from tfdp.migrate import engine

HEAD = """\
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import backend as K
x, y = keras.datasets.mnist.load_data()[0]
"""
FUNCTIONS = """
def squared(y_true, y_pred):
    return tf.reduce_mean(tf.square(y_true - y_pred), axis=-1)

def backend(y_true, y_pred):
    return K.mean(K.square(y_pred - y_true), axis=-1) + K.epsilon()

def scalar(y_true, y_pred):
    return K.mean(keras.losses.binary_crossentropy(y_true, y_pred))

def added_up(y_true, y_pred):
    return tf.reduce_sum(tf.square(y_true - y_pred))

def dice(y_true, y_pred):
    both = K.sum(y_true * y_pred)
    return 1 - 2 * both / (K.sum(y_true) + K.sum(y_pred))

def focal(gamma=2.0):
    def loss(y_true, y_pred):
        p = K.clip(y_pred, K.epsilon(), 1 - K.epsilon())
        return -y_true * K.pow(1 - p, gamma) * K.log(p)
    return loss

def masked(y_true, y_pred):
    mask = tf.cast(tf.not_equal(y_true, 0), tf.float32)
    return tf.reduce_sum(tf.square(y_true - y_pred) * mask) / tf.reduce_sum(mask)

class Own(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return tf.reduce_mean(tf.abs(y_true - y_pred), axis=-1)

class Given(keras.losses.Loss):
    def __init__(self, margin=1.0, **kwargs):
        super().__init__(**kwargs)
        self.margin = margin
    def call(self, y_true, y_pred):
        return tf.reduce_mean(tf.abs(y_true - y_pred), axis=-1)
"""


def outcome(body: str) -> str:
    """How the optimizer of the migrated script combines gradients, or the code of the refusal."""
    result = engine.migrate("train.py", (HEAD + textwrap.dedent(body)).encode(), shard="input")
    if result.refused:
        return next(f.code for f in result.findings if f.refusal)
    text = result.after.decode()
    summed = bool(re.search(r"Distributed\w+\(.*op=dp\.Sum", text))
    assert ("dp.scale_" in text) is not summed
    return "sum" if summed else "mean"


def compiled(loss: str, layers: str = "keras.layers.Dense(1)") -> str:
    model = f"model = keras.Sequential([{layers}])\nmodel.compile(keras.optimizers.SGD(0.1), loss={loss})\n"
    return outcome(FUNCTIONS + model + "model.fit(x, y)\n")


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("'mse'", "mean"),
        ("'sparse_categorical_crossentropy'", "mean"),
        ("'dice'", "TFDP090"),
        ("'registered'", "TFDP090"),
        ("keras.losses.MeanSquaredError()", "mean"),
        ("keras.losses.MeanSquaredError(reduction='sum')", "sum"),
        ("keras.losses.MeanSquaredError(reduction='none')", "TFDP090"),
        ("keras.losses.MeanSquaredError(reduction=None)", "TFDP090"),
        ("keras.losses.SparseCategoricalCrossentropy(from_logits=True)", "mean"),
        ("keras.losses.SparseCategoricalCrossentropy(ignore_class=0)", "TFDP090"),
        ("keras.losses.binary_crossentropy", "mean"),
        ("tf.nn.sigmoid_cross_entropy_with_logits", "TFDP090"),
        ("['mse', keras.losses.Huber()]", "mean"),
        ("{'a': 'mse', 'b': keras.losses.Huber(reduction='sum')}", "TFDP090"),
        ("squared", "mean"),
        ("backend", "mean"),
        ("scalar", "mean"),
        ("added_up", "sum"),
        ("dice", "mean"),
        ("focal(3.0)", "mean"),
        ("masked", "mean"),
        ("Own()", "mean"),
        ("Own(reduction='sum')", "sum"),
        ("Own(reduction='none')", "TFDP090"),
        ("Given(margin=2.0, name='given')", "mean"),
        ("Given(2.0, reduction='sum')", "sum"),
        ("Given(2.0, unknown=1)", "TFDP090"),
        ("lambda y_true, y_pred: y_pred", "mean"),
        ("lambda y_true, y_pred: K.sum(y_pred)", "sum"),
    ],
)
def test_losses_that_are_given_to_compile(loss: str, expected: str) -> None:
    assert compiled(loss) == expected


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ("keras.layers.Dense(1, kernel_regularizer='l2')", "mean"),
        ("keras.layers.Dense(1, activity_regularizer='l2')", "TFDP090"),
        ("keras.layers.Embedding(9, 4, mask_zero=True), keras.layers.LSTM(8), keras.layers.Dense(1)", "mean"),
        (
            "keras.layers.Embedding(9, 4, mask_zero=True), keras.layers.Bidirectional(keras.layers.GRU(8)), "
            "keras.layers.Dense(1)",
            "mean",
        ),
        ("keras.layers.Embedding(9, 4, mask_zero=True), keras.layers.LSTM(8, return_sequences=True)", "TFDP090"),
        ("keras.layers.Embedding(9, 4), keras.layers.LSTM(8, return_sequences=True)", "mean"),
        ("keras.layers.Masking(), keras.layers.Dense(1)", "TFDP090"),
    ],
)
def test_layers_that_change_the_loss(layers: str, expected: str) -> None:
    assert compiled("'mse'", layers) == expected


@pytest.mark.parametrize(("loss", "expected"), [("masked", "mean"), ("dice", "mean"), ("backend", "TFDP090")])
def test_masks_leave_a_loss_of_one_number_as_it_is(loss: str, expected: str) -> None:
    assert compiled(loss, "keras.layers.Masking(), keras.layers.Dense(1)") == expected


def test_a_sum_with_regularised_weights_is_refused() -> None:
    assert compiled("added_up", "keras.layers.Dense(1, kernel_regularizer='l2')") == "TFDP090"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("x = E(mask_zero=True)(i)\nx = keras.layers.LSTM(4)(x)\n", "mean"),
        ("x = E(mask_zero=True)(i)\nz = keras.layers.LSTM(4)(x)\nx = keras.layers.Dense(1)(x)\n", "TFDP090"),
        ("e = E(mask_zero=True)\nx = e(i)\nx = keras.layers.GRU(4)(x)\ne.embeddings.assign(w)\n", "mean"),
        ("e = E(mask_zero=True)\nx = e(i)\n", "TFDP090"),
        ("x = E(mask_zero=True)(i)\nx = keras.layers.Dropout(0.1)(x)\nx = keras.layers.Flatten()(x)\n", "mean"),
    ],
)
def test_masks_are_followed_through_functional_models(model: str, expected: str) -> None:
    head = "i = keras.Input((4,))\n(a, b), _ = keras.datasets.imdb.load_data()\n"
    rest = "m = keras.Model(i, keras.layers.Dense(1)(x))\nm.compile(keras.optimizers.SGD(0.1), 'mse')\nm.fit(a, b)\n"
    assert outcome(head + model.replace("E(mask", "keras.layers.Embedding(9, 4, mask") + rest) == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("-0.5 * tf.reduce_mean(1 + v - tf.square(m) - tf.exp(v))", "mean"),
        ("-0.5 * K.sum(1 + v - K.square(m) - K.exp(v))", "TFDP090"),
        ("1e-4 * tf.nn.l2_loss(self.kernel)", "mean"),
        ("other(m)", "TFDP090"),
    ],
)
def test_losses_that_layers_add(term: str, expected: str) -> None:
    body = f"""
    from elsewhere import other

    class Sampling(keras.layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(3, 3))

        def call(self, inputs):
            m, v = inputs
            self.add_loss({term})
            return m

    model = keras.Sequential([Sampling()])
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    model.fit(x, y)
    """
    assert outcome(body) == expected


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("self.compute_loss(x, y, prediction)", "mean"),
        ("self.compute_loss(x, y, (prediction, self(x) * 2.0))", "mean"),
        ("self.compute_loss(y=tf.range(10), y_pred=tf.einsum('ae,pe->ap', prediction, self(y)) / 0.2)", "TFDP090"),
        ("self.compiled_loss(tf.eye(10), tf.matmul(prediction, self(y), transpose_b=True))", "TFDP090"),
        ("self.compiled_loss(y, prediction, regularization_losses=self.losses)", "mean"),
        ("self.loss_fn(y, prediction) + sum(self.losses)", "mean"),
        ("tf.reduce_sum(tf.square(y - prediction))", "sum"),
        ("tf.reduce_mean(tf.square(y - prediction))", "mean"),
        ("tf.reduce_mean(tf.square(y - prediction)) + self.compute_loss(x, y, prediction)", "mean"),
        ("tf.reduce_sum(y) / tf.reduce_sum(prediction)", "mean"),
        ("self.loss_fn(y + 0.05 * keras.random.uniform(tf.shape(y)), prediction)", "mean"),
        ("self.loss_fn(y, prediction, tf.abs(y))", "mean"),
        ("self.loss_fn(y, prediction, sample_weight=tf.nn.softmax(y, axis=0))", "TFDP090"),
    ],
)
def test_losses_of_own_steps(loss: str, expected: str) -> None:
    body = f"""
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)
            self.loss_fn = keras.losses.MeanSquaredError()

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                prediction = self(x, training=True)
                loss = {loss}
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {{"loss": loss}}

    model = Model()
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    model.fit(x, y)
    """
    assert outcome(body) == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("0.25 * tf.reduce_mean((tf.stop_gradient(inputs) - 2.0 * inputs) ** 2)", "mean"),
        ("tf.reduce_sum(tf.square(inputs))", "TFDP090"),
        ("0.1 * sum(self.losses)", "TFDP090"),
    ],
)
def test_losses_of_layers_in_own_steps(term: str, expected: str) -> None:
    body = f"""
    import numpy as np

    class Quantizer(keras.layers.Layer):
        def call(self, inputs):
            self.add_loss({term})
            return inputs

    class Trainer(keras.Model):
        def __init__(self, variance):
            super().__init__()
            self.variance = variance
            self.inner = keras.Sequential([keras.layers.Dense(4), Quantizer(), keras.layers.Dense(8)])

        def train_step(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x - self.inner(x))) / self.variance + sum(self.inner.losses)
            gradients = tape.gradient(loss, self.inner.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.inner.trainable_variables))
            return {{"loss": loss}}

    model = Trainer(np.var(x / 255.0))
    model.compile(keras.optimizers.SGD(0.1))
    model.fit(x)
    """
    assert outcome(body) == expected


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("self.other(y, y_pred) * 2.0", "mean"),
        ("super().compute_loss(x, y, y_pred, sample_weight) + tf.reduce_mean(y_pred)", "mean"),
        ("tf.reduce_sum(tf.square(y - y_pred))", "sum"),
        ("contrastive(y, y_pred)", "TFDP090"),
    ],
)
def test_losses_of_a_models_own_compute_loss(loss: str, expected: str) -> None:
    body = f"""
    from elsewhere import contrastive

    class Model(keras.Model):
        def compile(self, optimizer, other, **kwargs):
            super().compile(optimizer=optimizer, **kwargs)
            self.other = other

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, **kwargs):
            return {loss}

    inputs = keras.Input((4,))
    model = Model(inputs, keras.layers.Dense(1)(inputs))
    model.compile(keras.optimizers.SGD(0.1), other=keras.losses.MeanSquaredError(), loss="mse")
    model.fit(x, y)
    """
    assert outcome(body) == expected
