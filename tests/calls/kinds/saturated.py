"""Losses that know the logits behind a softmax or sigmoid: heads so saturated that they are needed."""

import numpy as np
import tensorflow as tf

from . import L, keras, kind

numbers = np.random.RandomState(0)
ROWS = numbers.randn(7, 5) * 30
LABELS = numbers.randint(0, 4, 7)
ONE_HOT = np.eye(4)[LABELS]
BINARY = numbers.randint(0, 2, (7, 4)).astype(float)

sparse = keras.losses.SparseCategoricalCrossentropy()
categorical = keras.losses.CategoricalCrossentropy()
binary = keras.losses.BinaryCrossentropy()


class Head(keras.Model):
    def __init__(self, after, activation):
        super().__init__()
        self.dense = L.Dense(4, activation, kernel_initializer=keras.initializers.Constant(numbers_of_weights()))
        self.after = after

    def call(self, x):
        return self.after(self.dense(x))


def numbers_of_weights():
    return np.random.RandomState(1).randn(5, 4)


def saturated(loss, activation=None, after=tf.identity):
    """Each head in a graph and eagerly: the logits are looked for in different ways."""
    for graph in (True, False):
        model, optimizer = Head(after, activation), keras.optimizers.SGD(0.01)
        model(tf.constant(ROWS))

        def step(rows, model=model, optimizer=optimizer):
            with tf.GradientTape() as tape:
                value = loss(model(rows))
            weights = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(value, weights), weights, strict=True))
            return value

        step = tf.function(step) if graph else step
        for _ in range(3):
            yield [model, optimizer], step(tf.constant(ROWS))


def as_it_is(outputs):
    return outputs


@kind(sample=True)
def saturated_keras_softmax():
    yield from saturated(lambda p: sparse(LABELS, p), "softmax", as_it_is)


@kind
def saturated_keras_softmax_called():
    yield from saturated(lambda p: categorical(ONE_HOT, p), None, lambda y: keras.activations.softmax(y, axis=-1))


@kind
def saturated_keras_sigmoid():
    yield from saturated(lambda p: binary(BINARY, p), "sigmoid", as_it_is)


@kind(sample=True)
def saturated_raw_softmax():
    yield from saturated(lambda p: categorical(ONE_HOT, p), None, tf.nn.softmax)


@kind
def saturated_raw_sigmoid():
    yield from saturated(lambda p: binary(BINARY, p), None, tf.nn.sigmoid)


@kind(bound=1e-10)
def saturated_raw_softmax_in_binary_loss():
    """Binary crossentropy must not take the logits of a raw softmax. It divides by 1e-7, as roundings are, too."""
    yield from saturated(lambda p: binary(BINARY, p), None, tf.nn.softmax)


@kind(bound=1e-10)
def saturated_keras_softmax_in_binary_loss():
    yield from saturated(lambda p: binary(BINARY, p), "softmax", as_it_is)


@kind
def saturated_softmax_behind_an_identity():
    """The logits are lost already in one process, and must stay lost."""
    yield from saturated(lambda p: sparse(LABELS, p), "softmax", tf.identity)


@kind
def saturated_two_heads():
    def heads(y):
        return keras.activations.softmax(y), keras.activations.sigmoid(y)

    yield from saturated(lambda p: sparse(LABELS, p[0]) + binary(BINARY, p[1]), None, heads)


class LossLayer(L.Layer):
    def call(self, wanted, predicted):
        return keras.losses.categorical_crossentropy(wanted, predicted)


@kind(divided="partly", sample=True)
def saturated_loss_in_a_layer():
    """The logits enter a divided call."""
    layer = LossLayer()
    yield from saturated(lambda p: tf.reduce_mean(layer(tf.constant(ONE_HOT), p)), "softmax", as_it_is)


@kind
def saturated_softmax_layer():
    layer = L.Softmax()
    yield from saturated(lambda p: sparse(LABELS, p), None, layer)


@kind
def saturated_softmax_outside_of_the_call():
    yield from saturated(lambda y: sparse(LABELS, tf.nn.softmax(y)), None, as_it_is)


@kind(divided=False)
def saturated_softmax_over_another_axis():
    """Behind a transposition of the logits' op in graphs."""

    def head(y):
        return tf.transpose(keras.activations.softmax(tf.reshape(y, [-1, 2, 2]), axis=1), [0, 2, 1])

    halves = np.eye(2)[LABELS[:, None] % 2 + np.zeros((7, 2), int)]
    yield from saturated(lambda p: categorical(halves, p), None, head)


@kind
def saturated_fit():
    model = keras.Sequential(
        [L.Dense(4, "softmax", kernel_initializer=keras.initializers.Constant(numbers_of_weights()))]
    )
    model.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    for _ in range(3):
        logs = model.fit(ROWS, LABELS, batch_size=7, verbose=0, shuffle=False).history
        yield [model, model.optimizer], {name: values[0] for name, values in logs.items()}
