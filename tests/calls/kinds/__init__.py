"""Kinds of training, each a small generator that trains something in float64 on few rows.

A kind yields `(things, loss)` after each step: all models, optimizers, metrics and variables that it has, and a number,
an array or the logs. It knows nothing of tfdp: the same text trains in one process and on several workers, and what it
yields must be equal. `kind` says what more is expected of one:

    divided     True (if missing): all calls of layers, models and `by_rows` that a tape records and that have rows to
                divide are divided; "partly": some are; "beside": what counts is called whole, as it may do more than to
                compute, and a layer beside it is divided; False: none need be, and the workers may all say that none is
    bound       how far arrays may differ, relative to the largest absolute value
    keras       the first major version of Keras that has what it uses
    may_refuse  words: instead of being exact it may end, on every worker, in an error of tfdp's that has one of them
    repeats     False: TensorFlow itself does not train it alike each time, to the last bit
    sample      that `make test` runs it on two workers; `make calls` runs all

Decorators are read without importing this file (see launches.py), so their arguments are literals.
"""

import types

import numpy as np
import tensorflow as tf

keras = tf.keras
L = keras.layers
KERAS = 3 if hasattr(keras, "ops") else 2
KINDS = {}
DIVIDE = [lambda function: function]  # by `run_kinds.py`, on workers
CALLBACKS = [lambda callbacks: callbacks]  # the same
BESIDE = [lambda: None]  # for kinds of which nothing else is divided


def kind(run=None, **expected):
    """Registers a generator as a kind of training."""
    if run is None:
        return lambda run: kind(run, **expected)
    KINDS[run.__name__] = types.SimpleNamespace(run=run, **expected)
    return run


def by_rows(function):
    """What a migrated script wraps functions in; in one process without tfdp the function itself."""
    return DIVIDE[0](function)


def examples(count=64, width=8, outputs=1):
    """Inputs and targets, the same at each call."""
    numbers = np.random.RandomState(0)
    return numbers.rand(count, width), numbers.rand(count, outputs)


def some(count, *arrays):
    """Random rows of arrays as tensors, the same of each: one of them alone, or a list."""
    chosen = np.random.permutation(len(arrays[0]))[:count]
    taken = [tf.constant(array[chosen]) for array in arrays]
    return taken if len(taken) > 1 else taken[0]


def mlp(*sizes, activation="tanh"):
    return keras.Sequential([L.Dense(size, activation=activation) for size in sizes[:-1]] + [L.Dense(sizes[-1])])


def square(predicted, wanted):
    return tf.reduce_mean((predicted - wanted) ** 2)


def weights_of(models):
    return [v for model in models for v in (model.trainable_variables if hasattr(model, "variables") else [model])]


def descend(optimizer, models, loss):
    """One update by what `loss()` gives; its value."""
    with tf.GradientTape() as tape:
        BESIDE[0]()
        value = loss()
    weights = weights_of(models)
    optimizer.apply_gradients(zip(tape.gradient(value, weights), weights, strict=True))
    return value


def descend_by_hand(rate, weights, loss):
    """One update of variables without an optimizer; the value of `loss()`."""
    with tf.GradientTape() as tape:
        BESIDE[0]()
        value = loss()
    for weight, found in zip(weights, tape.gradient(value, weights), strict=True):
        weight.assign_sub(rate * found)
    return value


def trained(model, *arrays, optimizer=None, loss=square, steps=3, count=10, graph=False, call=None):
    """A model trained on random rows: the last array has the targets."""
    optimizer = optimizer or keras.optimizers.Adam(0.01)
    call = call or (lambda *inputs: model(*inputs, training=True))

    def step(*taken):
        return descend(optimizer, [model], lambda: loss(call(*taken[:-1]), taken[-1]))

    step = tf.function(step) if graph else step
    for _ in range(steps):
        value = step(*some(count, *arrays))
        yield [model, optimizer], value


def something_beside():
    """A call of a layer that is divided and changes nothing."""
    layer = L.Rescaling(2.0, name="beside")
    return lambda: layer(tf.ones([6, 2], layer.compute_dtype))


class Recorder(keras.callbacks.Callback):
    """What a kind yields, after each batch and epoch of `fit`."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def record(self, logs):
        self.seen.append((arrays([self.model, self.model.optimizer]), dict(logs or {})))

    def on_train_batch_end(self, batch, logs=None):
        del batch
        self.record(logs)

    def on_epoch_end(self, epoch, logs=None):
        del epoch
        self.record(logs)


def fitted(model, *data, callbacks=(), **options):
    recorder = Recorder()
    model.fit(*data, verbose=0, callbacks=called_back([recorder, *callbacks]), **options)
    yield from recorder.seen


def called_back(callbacks):
    """What a migrated script gives `fit`; in one process without tfdp the callbacks themselves."""
    return CALLBACKS[0](callbacks)


def compiled(model, loss="mse", optimizer=None, **options):
    model.compile(optimizer or keras.optimizers.Adam(0.01), loss, **options)
    return model


def arrays(things):
    """Copies of all numbers in things, by name."""
    if isinstance(things, dict):  # copied already
        return things
    found = {}
    for place, thing in enumerate(things):
        held = thing.variables if hasattr(thing, "variables") else [thing]
        for number, variable in enumerate(held() if callable(held) else held):
            name = getattr(variable, "path", None) or getattr(variable, "name", "")
            found[f"{place}.{number} {name}"] = np.array(variable)
    return found
