"""Layers of the script's own: what they hold, how they are built, and what their classes and decorators keep."""

import collections
import functools
import itertools
import random

import tensorflow as tf

from . import L, descend, keras, kind, some, square
from .own_code import Own, X, Y, through_a_layer, trained


class LeftOut(L.Layer):
    """A block that is left out by chance, as Python says; else noise of a generator of its own is in it."""

    def __init__(self, share):
        super().__init__()
        self.dense, self.share = L.Dense(6), share
        self.generator = tf.random.Generator.from_seed(7)

    def build(self, shape):
        self.dense.build(shape)

    def call(self, x, training=None):
        if training and random.random() < self.share:
            return x
        h = self.dense(x)
        if training:
            h *= 1 + 0.1 * self.generator.normal(tf.shape(h), dtype=h.dtype)
        return x + h


@kind(divided="partly", sample=True)
def blocks_left_out_by_chance():
    blocks = [LeftOut(0.3), LeftOut(0.5)]
    model, optimizer = keras.Sequential([L.Dense(6), *blocks, L.Dense(1)]), keras.optimizers.SGD(0.1)
    model(X[:2])
    optimizer.build(model.trainable_variables)
    for _ in range(6):
        rows, wanted = some(8, X, Y)
        with tf.GradientTape() as tape:
            loss = square(model(rows, training=True), wanted)
            loss += sum(tf.reduce_sum(tf.convert_to_tensor(each) * 0) for each in model.trainable_variables)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        yield [model, optimizer, *(each.generator.state for each in blocks)], loss


class Compiled(L.Layer):
    """What it does is in a method that is a function of TensorFlow's."""

    def __init__(self):
        super().__init__()
        self.dense = L.Dense(6, "tanh")

    def build(self, shape):
        self.dense.build(shape)

    @tf.function
    def core(self, x, centred):
        h = self.dense(x)
        return h - tf.reduce_mean(h, 0) if centred else h

    def call(self, x, centred=False):
        return x + self.core(x, centred)


@kind(divided="partly")
def methods_that_are_functions():
    layer, last, optimizer = Compiled(), L.Dense(1), keras.optimizers.SGD(0.1)
    layer.build((None, 6))
    last.build((None, 6))

    def step(rows, wanted, centred):
        return descend(optimizer, [layer, last], lambda: square(last(layer(layer(rows), centred=centred)), wanted))

    compiled = tf.function(step)
    for number in range(6):
        loss = (compiled if number > 2 else step)(*some(8, X, Y), number % 3 > 0)
        yield [layer, last, optimizer], loss


class BuiltEarly(keras.Model):
    """It says that it is built, and its layers make their variables when it is called."""

    def __init__(self):
        super().__init__()
        self.first, self.last, self.unused = L.Dense(6, "tanh"), L.Dense(1), L.Dense(2)

    def build(self, shape):
        del shape
        self.built = True

    def call(self, x):
        h = self.first(x)
        return self.last(h - tf.reduce_mean(h, 0))


@kind(divided="partly")
def layers_that_are_built_by_the_first_call():
    for graph in (False, True):
        model, optimizer = BuiltEarly(), keras.optimizers.SGD(0.1)
        model.build((None, 6))

        def step(rows, wanted, model=model):
            with tf.GradientTape() as tape:
                loss = square(model(rows, training=True), wanted)
            weights = model.first.weights + model.last.weights
            for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
                weight.assign_sub(0.1 * gradient)
            return loss

        step = tf.function(step) if graph else step
        for _ in range(3):
            loss = step(*some(8, X, Y))
            yield [model.first, model.last, optimizer], loss


class Gated(L.Layer):
    """Adds what goes through a layer that mixes rows, times a gate that is closed at first and no gradient opens."""

    def __init__(self):
        super().__init__()
        self.dense, self.mixing = L.Dense(6), L.Softmax(axis=0)

    def build(self, shape):
        del shape
        self.gate = self.add_weight(shape=(), initializer="zeros", trainable=False, name="gate")

    def call(self, x):
        x = self.dense(x)
        return x + tf.convert_to_tensor(self.gate) * tf.stop_gradient(self.mixing(x))


@kind(divided="partly", sample=True)
def layer_that_mixes_rows_by_a_gate():
    layer = Gated()
    model, optimizer = keras.Sequential([L.Dense(6, "tanh"), layer, L.Dense(1)]), keras.optimizers.Adam(0.01)
    model(X[:2])
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(rows, wanted):
        return descend(optimizer, [model], lambda: square(model(rows, training=True), wanted))

    for number in range(3):
        layer.gate.assign(float(number))
        yield [model, optimizer], step(*some(8, X, Y))


class OfClass(Own):
    count, numbers, last = 0, itertools.count(1), collections.deque([1.0], maxlen=2)


def counted_by_the_class(x, layer):
    type(layer).count += 1
    return x * (1 + type(layer).count % 3)


def numbered_by_an_iterator(x, layer):
    return x * layer.numbers.__next__()


def by_the_number_before(x, layer):
    layer.last.append(layer.last[-1] + 1)
    return x * layer.last[0]


@kind(divided="partly", sample=True)
def layer_that_changes_what_its_class_holds():
    """A look would count, take and add once more than the script does."""
    for does in (counted_by_the_class, numbered_by_an_iterator, by_the_number_before):
        yield from through_a_layer(does, of=OfClass)
        yield from through_a_layer(does, of=OfClass, graph=True)


class Counted(Own):
    count = 0


@kind(divided="partly", sample=True)
def layer_that_counts_in_its_class():
    yield from through_a_layer(counted_by_the_class, of=Counted, graph=True)


def with_a_count(function):
    """A decorator whose wrapper has a state of its own."""
    count = 0

    @functools.wraps(function)
    def called(self, x):
        nonlocal count
        count += 1
        return function(self, x) * (1 + count % 3)

    return called


class Decorated(Own):
    call = with_a_count(Own.call)


@kind(divided="partly", sample=True)
def layer_whose_call_is_counted_by_a_decorator():
    yield from through_a_layer(lambda x, _: tf.tanh(x), of=Decorated, graph=True)


def asks_whether_it_runs_eagerly(x, _):
    return tf.tanh(x) if tf.executing_eagerly() else x**2


def asks_for_the_numbers_it_has(x, _):
    return tf.tanh(x) if hasattr(x, "numpy") else x**2


def asks_by_other_words_for_the_length(x, _):
    return tf.tanh(x) if tf.get_static_value(tf.shape(x)) is not None else x**2


@kind(sample=True, divided="partly")
def layers_that_ask_how_they_are_run():
    """Divided they would be asked in a graph, in which no length is known: they run whole."""
    for graph in (False, True):
        for asks in (asks_whether_it_runs_eagerly, asks_for_the_numbers_it_has, asks_by_other_words_for_the_length):
            yield from through_a_layer(asks, graph=graph)


def as_many_as_there_are(x, _):
    return x + 0.1 * tf.cast(tf.random.uniform(tf.shape(x), 0, tf.shape(x)[0], dtype=tf.int32, seed=3), x.dtype)


def stateless_to_as_many(x, _):
    drawn = tf.random.stateless_uniform(tf.shape(x), [1, 2], 0, tf.shape(x)[0], dtype=tf.int32)
    return x + 0.1 * tf.cast(drawn, x.dtype)


def seeded_by_the_length(x, _):
    return x + tf.random.stateless_normal(tf.shape(x), [tf.shape(x)[0], 7], dtype=x.dtype)


@kind(sample=True, divided="partly")
def layers_that_draw_by_the_number_of_rows():
    """Bounds and seeds that a worker's rows have not in common with the whole batch."""
    for noise in (as_many_as_there_are, stateless_to_as_many, seeded_by_the_length):
        yield from through_a_layer(noise, graph=True)


@kind(divided="partly")
def setting_in_a_dictionary_that_changes():
    moved = L.Lambda(tf.roll, arguments={"shift": 0, "axis": 0})
    model, optimizer = keras.Sequential([L.Dense(6), moved, L.Dense(1)]), keras.optimizers.SGD(0.1)
    model.build((None, X.shape[1]))
    for shift in (0, 0, 1, 2):
        moved.arguments["shift"] = shift
        x, y = some(7, X, Y)
        yield [model, optimizer], descend(optimizer, [model], lambda x=x, y=y: square(model(x), y))


@kind(sample=True, divided="partly")
def activation_that_is_replaced():
    changed = L.Activation("tanh")
    model, optimizer = keras.Sequential([L.Dense(6), changed, L.Dense(1)]), keras.optimizers.SGD(0.1)
    model.build((None, X.shape[1]))
    for activation in (keras.activations.tanh, keras.activations.relu, functools.partial(tf.nn.softmax, axis=0)):
        changed.activation = activation
        x, y = some(7, X, Y)
        yield [model, optimizer], descend(optimizer, [model], lambda x=x, y=y: square(model(x), y))


class Branches(L.Layer):
    """Makes layers in its call, as functions of Keras' do: they have no variables."""

    def __init__(self):
        super().__init__()
        self.one, self.other = L.Dense(4, "tanh"), L.Dense(5)

    def build(self, shape):
        self.one.build(shape)
        self.other.build(shape)

    def call(self, inputs):
        both = L.concatenate([self.one(inputs), L.ReLU()(self.other(inputs))])
        return L.Flatten()(L.Reshape((3, 3))(both))


@kind(sample=True)
def layers_that_a_call_makes():
    net = keras.Sequential([L.Dense(6), Branches(), Branches(), L.Dense(1)])
    net.build((None, 6))
    yield from trained(net, X, Y, graph=True, steps=3)
    yield [], float(sum(map(ord, L.Dense(1).name + L.ReLU().name)))  # names go on as in one process
