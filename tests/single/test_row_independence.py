"""Which models mix the examples of a batch, as the look at a model before its first call sees it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfdp.runtime.start import row_independence

layers = keras.layers


class Own(keras.Model):
    """A dense layer, then a function of its result."""

    def __init__(self, then, *, before=None, drawn=0):
        super().__init__()
        self.then, self.before = then, before
        self.first, self.second = layers.Dense(6, activation="relu"), layers.Dense(3)
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, name="calls") if drawn else None

    def call(self, x, training=None):
        h = self.first(x if self.before is None else self.before(x))
        if self.calls is not None:
            self.calls.assign_add(1.0)
        return self.second(self.then(h, training))


class OwnLayer(layers.Layer):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, h):
        return self.function(h)


def functional(*middle, shape=(5,)):
    x = inputs = keras.Input(shape)
    for layer in middle:
        x = layer(x)
    return keras.Model(inputs, layers.Dense(2)(x))


def attended(axis):
    """Attention over the time axis, or, turned round, over the batch."""
    inputs = keras.Input((7, 4))
    turned = inputs if axis == 1 else OwnLayer(lambda h: tf.transpose(h, [1, 0, 2]))(inputs)
    found = layers.MultiHeadAttention(2, 4)(turned, turned)
    return keras.Model(inputs, found if axis == 1 else OwnLayer(lambda h: tf.transpose(h, [1, 0, 2]))(found))


def gram(h, _):
    return tf.linalg.matmul(h, h, transpose_b=True) @ h


def pairs(h, _):
    """Row i and row i ^ 1."""
    size = tf.shape(h)[0]
    return h + tf.gather(h, tf.minimum(tf.bitwise.bitwise_xor(tf.range(size), 1), size - 1))


MIXING = {
    "reversed": lambda: Own(lambda h, _: h + h[::-1]),
    "reversed by a function": lambda: Own(lambda h, _: h - tf.reverse(h, [0])),
    "rolled": lambda: Own(lambda h, _: h + tf.roll(h, 1, 0)),
    "pairs": lambda: Own(pairs),
    "gram": lambda: Own(gram),
    "centred": lambda: Own(lambda h, _: h - tf.reduce_mean(h, 0)),
    "deviation": lambda: Own(lambda h, _: h / (tf.math.reduce_std(h, 0) + 1.0)),
    "largest": lambda: Own(lambda h, _: h / (tf.reduce_max(tf.abs(h)) + 1.0)),
    "times the size": lambda: Own(lambda h, _: h * tf.cast(tf.shape(h)[0], tf.float32)),
    "while training": lambda: Own(lambda h, training: h - tf.reduce_mean(h, 0) if training else h),
    "before the first layer": lambda: Own(lambda h, _: h, before=lambda x: x - tf.reduce_mean(x, 0, keepdims=True)),
    "softmax over axis 0": lambda: functional(layers.Dense(4), layers.Softmax(axis=0)),
    "an activation": lambda: functional(layers.Dense(4, activation=lambda h: h - tf.reduce_mean(h, axis=0))),
    "a Lambda": lambda: functional(layers.Lambda(lambda h: h * tf.reduce_sum(h), output_shape=(5,))),
    "an own layer": lambda: keras.Sequential([keras.Input((5,)), OwnLayer(lambda h: tf.cumsum(h, 0)), layers.Dense(2)]),
    "attention over the batch": lambda: attended(0),
}

SOUND = {
    "dense": lambda: Own(lambda h, _: h),
    "normalised rows": lambda: Own(lambda h, _: h - tf.reduce_mean(h, -1, keepdims=True)),
    "reversed columns": lambda: Own(lambda h, _: h[:, ::-1]),
    "reshaped by the size": lambda: Own(lambda h, _: tf.reshape(tf.reshape(h, [tf.shape(h)[0], 2, 3]), [-1, 6])),
    "turned and back": lambda: Own(lambda h, _: tf.transpose(tf.transpose(h))),
    "softmax": lambda: functional(layers.Dense(4), layers.Softmax()),
    "batch normalisation": lambda: functional(layers.Dense(4), layers.BatchNormalization()),
    "layer normalisation": lambda: functional(layers.Dense(4), layers.LayerNormalization()),
    "dropout": lambda: functional(layers.Dropout(0.5)),
    "noise": lambda: functional(layers.GaussianNoise(0.5)),
    "convolutions": lambda: functional(
        layers.Conv2D(4, 3), layers.MaxPooling2D(), layers.GlobalAveragePooling2D(), shape=(16, 16, 3)
    ),
    "images of any size": lambda: functional(layers.Conv2D(4, 3), layers.GlobalMaxPooling2D(), shape=(None, None, 3)),
    "LSTM": lambda: functional(layers.LSTM(4), shape=(6, 3)),
    "two directions": lambda: functional(layers.Bidirectional(layers.GRU(3)), shape=(None, 3)),
    "embedding": lambda: functional(layers.Embedding(9, 4, mask_zero=True), layers.LSTM(4), shape=(None,)),
    "attention over time": lambda: attended(1),
    "half precision": lambda: functional(layers.Dense(64, dtype="mixed_float16"), layers.Dense(8, dtype="float16")),
    "drawn": lambda: Own(lambda h, _: h + tf.random.normal(tf.shape(h))),
}


def rows_for(model, size):
    shapes = getattr(model, "input_shape", None) if not isinstance(model, Own) else None
    shape = [each or 20 for each in (shapes or (None, 5))[1:]]
    random = np.random.default_rng(3)
    if any(isinstance(each, layers.Embedding) for each in model.layers):
        return tf.constant(random.integers(0, 9, [size, *shape]))
    return tf.constant(random.normal(size=[size, *shape]), tf.float32)


def seen(model):
    return row_independence._looks[model].mixes


def looked_at_eagerly(model):
    rows = rows_for(model, 6)
    model(rows)  # builds it
    row_independence.look(model, (rows,), {})


def looked_at_in_a_graph(model):
    rows = rows_for(model, 6)
    model(rows)
    spec = tf.TensorSpec([None, *rows.shape[1:]], rows.dtype)
    tf.function(lambda x: row_independence.look(model, (x,), {}), autograph=False).get_concrete_function(spec)


@pytest.mark.parametrize("half", [0, 1])
def test_one_half_of_the_rows_is_enough(half):
    """In the other the activation is nought for all."""
    model = MIXING["times the size"]()
    model(rows_for(model, 6))
    first, second = np.split(np.asarray(row_independence._numbers([row_independence._ROWS, 5], tf.float32, 0)), 2)
    lit, dark = (second, first) if half else (first, second)
    column = int(np.argmax(lit.max(0) - dark.max(0)))
    kernel, bias = np.zeros((5, 6)), np.full(6, -1.0)
    kernel[column, 0], bias[0] = 1.0, -dark[:, column].max()
    model.first.set_weights([kernel, bias])
    looked_at_in_a_graph(model)
    assert "mixes the examples of a batch" in seen(model)


@pytest.mark.parametrize("how", [looked_at_eagerly, looked_at_in_a_graph])
@pytest.mark.parametrize("name", MIXING)
def test_models_that_mix_rows_are_named(name, how):
    model = MIXING[name]()
    how(model)
    assert "mixes the examples of a batch" in seen(model)
    assert "test_row_independence.py" in seen(model)
    with pytest.raises(RuntimeError, match=r"dp\.init\(row_check=False\)"):
        row_independence.refuse_mixing(model.trainable_variables)
    row_independence.refuse_mixing([tf.Variable(1.0)])


@pytest.mark.parametrize("how", [looked_at_eagerly, looked_at_in_a_graph])
@pytest.mark.parametrize("name", SOUND)
def test_sound_models_are_not(name, how):
    model = SOUND[name]()
    how(model)
    assert seen(model) == ""
    row_independence.refuse_mixing(model.trainable_variables)


def test_a_look_writes_and_draws_nothing():
    counting = Own(lambda h, _: h - tf.reduce_mean(h, 0), drawn=1)
    rows = rows_for(counting, 6)
    counting(rows)
    tf.random.set_seed(5)
    before = tf.random.get_global_generator().state.numpy()
    row_independence.look(counting, (rows,), {})
    assert float(counting.calls) == 1
    assert (tf.random.get_global_generator().state.numpy() == before).all()
    assert seen(counting) == ""  # it cannot be told


def test_losses_of_the_call_before_are_those_of_the_model():
    class Penalised(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(2)

        def call(self, x):
            self.add_loss(tf.reduce_mean(x))
            return self.dense(x)

    row_independence_class = type("Looked", (Penalised,), {})
    row_independence.watch_calls(row_independence_class)
    model = row_independence_class()
    step = tf.function(lambda x: (model(x), sum(model.losses)))
    for _ in range(3):
        _, loss = step(tf.ones([4, 3]))
        assert float(loss) == 1
        assert len(model.losses) == 1


def test_what_is_no_batch_is_not_looked_at():
    model = Own(lambda h, _: h - tf.reduce_mean(h, 0))
    row_independence.look(model, (tf.ones([4, 5]),), {})  # not built
    model(tf.ones([1, 5]))
    row_independence.look(model, (tf.ones([1, 5]),), {})
    row_independence.look(model, (tf.ones([4, 5]), tf.ones([3, 5])), {})
    row_independence.look(model, (tf.sparse.from_dense(tf.ones([4, 5])),), {})
    assert model not in row_independence._looks


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_activation_that_is_nought_for_a_sample_hides_nothing(sign):
    """Weights by which `relu` gives nought for all that is positive, or for all that is negative."""
    model = MIXING["largest"]()
    model(rows_for(model, 6))
    model.first.set_weights([sign * np.ones_like(model.first.kernel), np.zeros_like(model.first.bias)])
    spec = tf.TensorSpec([None, 5], tf.float32)
    tf.function(lambda x: row_independence.look(model, (x,), {}), autograph=False).get_concrete_function(spec)
    assert "mixes the examples of a batch" in seen(model)
