"""Functions of Keras and TensorFlow in whose place the script has put its own, which mix rows once a flag is raised."""

import contextlib
import functools
import importlib

import tensorflow as tf

from . import KERAS, L, descend, examples, keras, kind, some, square

X, Y = examples(24, 6)


class Flag:
    mixes, calls = False, 0


def centred(x):
    Flag.calls += 1
    return x - tf.reduce_mean(x, 0) / 2 if Flag.mixes else x


def wrapped(function, *, named=True, late=False):
    """What computes as a function does, and mixes rows later; it calls itself by that one's name, or by its own.

    late: what is put in a place later mixes rows from the start.
    """

    def own(*arguments, training=None, **options):
        del training  # Keras 2 gives it to whatever takes any options
        found = function(*arguments, **options)
        return found - tf.reduce_mean(found, 0) / 2 if late else centred(found)

    return functools.wraps(function)(own) if named else own


@contextlib.contextmanager
def put(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def products():
    """Where Keras' Dense finds the product of matrices."""
    return (importlib.import_module("keras.src.ops"), "matmul") if KERAS == 3 else (tf.compat.v2, "matmul")


def stack(*layers):
    model = keras.Sequential([L.Dense(6, "relu"), *layers, L.Dense(1)])
    model.build((None, 6))
    return model


def steps(model, graph=False, flips=True, places=(contextlib.nullcontext,) * 4):
    """Four steps, the last two with the flag raised; each in a place of its own."""
    optimizer = keras.optimizers.SGD(0.05)
    Flag.mixes, Flag.calls = False, 0

    def step(rows, wanted):
        return descend(optimizer, [model], lambda: square(model(rows, training=True), wanted))

    for number, place in enumerate(places):
        with place():
            Flag.mixes = flips and number > 1
            run = tf.function(step) if graph else step
            yield [model, optimizer], run(*some(8, X, Y))
            yield [model], tf.constant(float(Flag.calls))


@kind(divided="beside", sample=True)
def call_of_a_class_of_keras():
    with put(L.Dense, "call", wrapped(L.Dense.call)):
        yield from steps(stack(L.Dense(6)))


@kind(divided="beside")
def call_of_a_class_of_keras_in_graphs():
    with put(L.Dense, "call", wrapped(L.Dense.call)):
        yield from steps(stack(L.Dense(6)), graph=True)


@kind(divided="partly")
def call_of_one_layer_of_keras():
    model = stack(L.Dense(6))
    with put(model.layers[1], "call", wrapped(model.layers[1].call)):
        yield from steps(model)


@kind(divided="partly")
def activation_that_says_it_is_of_keras():
    yield from steps(stack(L.Dense(6, wrapped(keras.activations.relu))))


@kind(divided="beside")
def activation_of_tensorflow_by_its_name():
    with put(tf.nn, "relu", wrapped(tf.nn.relu)):
        yield from steps(stack(L.Dense(6, tf.nn.relu)))


@kind(divided="beside", sample=True)
def product_of_matrices():
    owner, name = products()
    with put(owner, name, wrapped(getattr(owner, name), named=False)):
        yield from steps(stack(L.Dense(6)))


@kind(divided="beside")
def product_of_matrices_in_a_model_of_the_script():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.last = L.Dense(6, "tanh"), L.Dense(1)

        def call(self, x):
            return self.last(self.first(x))

    owner, name = products()
    model = Own()
    model(X[:2])
    with put(owner, name, wrapped(getattr(owner, name))):
        yield from steps(model)
        yield from steps(model, graph=True)


@kind(divided="partly")
def product_of_matrices_from_the_third_step_on():
    owner, name = products()
    late = functools.partial(put, owner, name, wrapped(getattr(owner, name), late=True))
    yield from steps(stack(L.Dense(6)), places=(contextlib.nullcontext, contextlib.nullcontext, late, late))


@kind(divided="partly")
def call_of_a_class_of_keras_from_the_third_step_on():
    late = functools.partial(put, L.Dense, "call", wrapped(L.Dense.call, late=True))
    places = (contextlib.nullcontext, contextlib.nullcontext, late, contextlib.nullcontext)
    for graph in (False, True):
        yield from steps(stack(L.Dense(6)), graph=graph, places=places)


class Counts:
    """An object in the place of a function."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *arguments, **options):
        self.calls += 1
        return self.function(*arguments, **options) * 1.5


@kind(divided="beside", sample=True)
def function_that_counts_and_keeps_rows_apart():
    owner, name = products()
    counts = Counts(getattr(owner, name))
    with put(owner, name, counts):
        for graph in (False, True):
            for found in steps(stack(L.Dense(6)), graph=graph, flips=False):
                yield found
                yield [], tf.constant(float(counts.calls))
