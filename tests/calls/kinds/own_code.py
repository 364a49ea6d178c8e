"""Code of the script's own that does by the numbers, the length, the step or a flag what one look would not show."""

import collections
import functools
import itertools
import random

import numpy as np
import tensorflow as tf

from . import L, by_rows, descend, descend_by_hand, examples, keras, kind, some, square

X, Y = examples(24, 6)
HOLES = np.where(np.random.RandomState(3).rand(*X.shape) < 0.2, np.nan, X)


def imputed(x, layer):
    """Holes are filled with the batch's mean, which has none in a batch that is made up."""
    del layer
    known = tf.math.is_finite(x)
    filled = tf.where(known, x, 0.0)
    mean = tf.reduce_sum(filled, 0) / tf.maximum(tf.reduce_sum(tf.cast(known, x.dtype), 0), 1.0)
    return tf.where(known, x, mean)


def centred_if_large(x, layer):
    del layer
    return x - tf.reduce_mean(x, 0) if x.shape[0] is not None and x.shape[0] > 5 else x


def centred_by_a_flag(x, layer):
    return x - layer.share * tf.reduce_mean(x, 0) if layer.share else x


def noisy_by_a_generator(x, layer):
    return x + tf.constant(layer.generator.normal(size=6))


def numbered(x, layer):
    layer.calls += 1
    return x * layer.calls


def clipped(x, layer):
    del layer

    @tf.custom_gradient
    def passed(x):
        return tf.identity(x), lambda upstream: tf.clip_by_value(upstream, -0.02, 0.02)

    return passed(x)


def sometimes_reversed(x, layer):
    del layer
    drawn = tf.random.uniform([], dtype=x.dtype)
    return tf.where(drawn < 0.3, (x + tf.reverse(x, [0])) / 2, x)


def kept_from_some_time_on(x, layer):
    if layer.calls > 2:
        layer.kept.append(x)
    layer.calls += 1
    return tf.tanh(x)


def guarded_by_range(x, layer):
    del layer
    return tf.cond(tf.reduce_max(tf.abs(x)) > 0.99, lambda: x / tf.reduce_max(tf.abs(x)), lambda: x)


class Own(L.Layer):
    def __init__(self, does):
        super().__init__()
        self.does, self.share, self.calls, self.kept = does, 0.0, 0, []
        self.generator = np.random.default_rng(5) if does is noisy_by_a_generator else None
        self.dense = L.Dense(6)

    def build(self, shape):
        self.scale = self.add_weight(shape=(6,), initializer="ones", name="scale")
        self.dense.build(shape)

    def call(self, x):
        return self.does(self.dense(x) * self.scale, self)


def through_a_layer(does, x=X, graph=False, of=Own):
    layer = of(does)
    model, optimizer = keras.Sequential([L.Dense(6, "tanh"), layer, L.Dense(1)]), keras.optimizers.Adam(0.01)
    model.build((None, 6))
    optimizer.build(model.trainable_variables)
    layer.calls = 0

    def step(rows, wanted):
        return descend(optimizer, [model], lambda: square(model(rows, training=True), wanted))

    step = tf.function(step, reduce_retracing=True) if graph else step
    for number, count in enumerate((8, 8, 5, 8)):
        layer.share = 0.3 * number
        loss = step(*some(count, np.nan_to_num(x, nan=0.5), Y))
        yield [model, optimizer], loss
        for kept in layer.kept:
            loss += tf.reduce_sum(kept)
        layer.kept.clear()
        yield [model, optimizer], loss


class Impute(L.Layer):
    def call(self, x):
        return imputed(x, self)


def with_holes(graph):
    model, optimizer = keras.Sequential([Impute(), L.Dense(4, "tanh"), L.Dense(1)]), keras.optimizers.Adam(0.01)
    model(HOLES[:2])
    optimizer.build(model.trainable_variables)

    def step(rows, wanted):
        return descend(optimizer, [model], lambda: square(model(rows, training=True), wanted))

    step = tf.function(step) if graph else step
    for _ in range(3):
        yield [model, optimizer], step(*some(8, HOLES, Y))


@kind(divided="partly", sample=True)
def holes_are_filled_with_the_mean_of_the_batch():
    yield from with_holes(True)
    yield from with_holes(False)


@kind(divided="partly")
def centred_if_the_batch_is_large():
    yield from through_a_layer(centred_if_large)
    yield from through_a_layer(centred_if_large, graph=True)


@kind(divided="partly", sample=True)
def centred_by_a_flag_that_is_raised():
    yield from through_a_layer(centred_by_a_flag)


@kind(divided="partly")
def noise_of_a_generator_in_an_attribute():
    yield from through_a_layer(noisy_by_a_generator)


def noisy_by_numpy(x, layer):
    del layer
    return x + tf.constant(np.random.normal(size=6)) * tf.random.uniform([], dtype=x.dtype)


@kind(divided="partly")
def noise_of_numpys_own_generator():
    yield from through_a_layer(noisy_by_numpy)


@kind(divided="partly")
def factor_that_counts_calls():
    yield from through_a_layer(numbered)


@kind(divided="partly")
def gradient_that_is_clipped_within():
    yield from through_a_layer(clipped)
    yield from through_a_layer(clipped, graph=True)


@kind(divided="partly")
def rows_that_are_mixed_with_some_probability():
    yield from through_a_layer(sometimes_reversed)
    yield from through_a_layer(sometimes_reversed, graph=True)


@kind(divided="partly")
def rows_that_are_kept_from_some_time_on():
    yield from through_a_layer(kept_from_some_time_on)


@kind(divided="partly")
def scaled_by_the_largest_of_the_batch_where_it_is_large():
    yield from through_a_layer(guarded_by_range, graph=True)


class Parts:
    """What a function of raw variables names."""

    def __init__(self, does):
        numbers = np.random.RandomState(0)
        self.first, self.second = tf.Variable(numbers.randn(6, 6)), tf.Variable(numbers.randn(6, 1))
        self.share, self.calls, self.kept, self.dense = 0.0, 0, [], tf.identity
        self.generator, self.scale = np.random.default_rng(5) if does is noisy_by_a_generator else None, 1.0


def through_a_function(does, graph=False):
    parts = Parts(does)

    def net(rows):
        return does(tf.nn.relu(tf.matmul(rows, parts.first)), parts) @ parts.second

    net = by_rows(net)
    weights = [parts.first, parts.second]

    def step(rows, wanted):
        return descend_by_hand(0.05, weights, lambda: square(net(rows), wanted))

    step = tf.function(step) if graph else step
    for number, count in enumerate((8, 8, 5, 8)):
        parts.share = 0.3 * number
        yield weights, step(*some(count, X, Y))
        yield weights, sum((tf.reduce_sum(each) for each in parts.kept), tf.zeros([], tf.float64))
        parts.kept.clear()


@kind(divided=False, may_refuse=("which it did not do when it was looked at",))
def function_that_centres_by_a_flag():
    yield from through_a_function(centred_by_a_flag)


@kind(divided=False, may_refuse=("which it did not do when it was looked at",))
def function_that_centres_large_batches():
    yield from through_a_function(centred_if_large)
    yield from through_a_function(centred_if_large, graph=True)


@kind(divided=False)
def function_with_a_mixture_by_chance():
    yield from through_a_function(sometimes_reversed)


@kind(divided=False)
def function_that_clips_a_gradient():
    yield from through_a_function(clipped)


@kind(divided=False, may_refuse=("which it did not do when it was looked at",))
def function_that_keeps_rows_later():
    yield from through_a_function(kept_from_some_time_on)


@kind(divided=False)
def function_that_looks_at_the_largest():
    yield from through_a_function(guarded_by_range)


@kind(divided=False, may_refuse=("draws numbers in Python",))
def function_with_a_generator_in_an_object():
    yield from through_a_function(noisy_by_a_generator)


@kind
def function_that_counts_its_calls():
    yield from through_a_function(numbered)


@kind(sample=True)
def convolutions_of_raw_variables():
    """As those write who use no layers."""
    numbers = np.random.RandomState(0)
    kernel, bias = tf.Variable(numbers.randn(3, 3, 1, 4) / 3), tf.Variable(np.zeros(4))
    dense, last = tf.Variable(numbers.randn(36, 8) / 6), tf.Variable(numbers.randn(8, 1) / 3)
    weights = [kernel, bias, dense, last]

    @by_rows
    def net(x, rate):
        x = tf.reshape(x, [-1, 6, 6, 1])
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME"), bias))
        x = tf.nn.max_pool(x, 2, 2, "SAME")
        x = tf.nn.dropout(tf.nn.relu(tf.reshape(x, [-1, 36]) @ dense), rate)
        return tf.nn.sigmoid(x @ last)

    def step(rows, wanted):
        return descend_by_hand(0.1, weights, lambda: square(net(rows, rate=0.2), wanted))

    x, y = examples(20, 36)
    compiled = tf.function(step)
    for number in range(4):
        yield weights, (compiled if number > 1 else step)(*some(7, x, y))


def doubled_if_five(x, layer):
    del layer
    return x * 2 if x.shape[0] == 5 else x


@kind(divided=False)
def function_of_batches_of_five():
    yield from through_a_function(doubled_if_five)
    yield from through_a_function(doubled_if_five, graph=True)


def scaled_if_numpy_says_so(x, layer):
    """All that Python can read of eager tensors, from the second batch on."""
    if layer.share:
        return x * (len(x) + float(np.asarray(x).mean()) + keras.backend.int_shape(x)[0])
    return x


@kind(divided=False, may_refuse=("cannot be built into a graph of rows of unknown number",))
def function_that_reads_values_later():
    yield from through_a_function(scaled_if_numpy_says_so)


def scaled_by_the_text_of_rows(x, layer):
    layer.calls += 1
    return x * (1 + (len(f"{x}") + len(repr(x))) / 100) if layer.calls > 2 else x


@kind(divided=False, may_refuse=("which it did not do when it was looked at",))
def function_that_reads_the_text_of_rows_later():
    yield from through_a_function(scaled_by_the_text_of_rows)


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


def several_draws_for_a_row(x, layer):
    del layer
    rows = tf.shape(x)[0]
    return x + tf.reshape(tf.random.normal([2 * rows, 3], dtype=x.dtype), [-1, 6]) / 10


@kind
def draws_of_several_rows_for_each():
    yield from through_a_layer(several_draws_for_a_row, graph=True)


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


def attended(x, layer):
    """A block of a transformer, of raw operations, with positions and sizes that are asked for."""
    del layer
    words = tf.reshape(x, [tf.shape(x)[0], 3, 2])
    words += tf.cast(tf.range(tf.shape(words)[1]), x.dtype)[None, :, None] / 10
    weights = tf.nn.softmax(tf.matmul(words, words, transpose_b=True))
    mixed = tf.einsum("bij,bjk->bik", tf.nn.dropout(weights, 0.2), words)
    state = tf.zeros([tf.shape(x)[0], 2], x.dtype)
    for each in tf.unstack(mixed, axis=1):
        state = tf.tanh(state + each)
    return tf.concat([x[..., :4], state], -1) + tf.random.normal(tf.shape(x), dtype=x.dtype) / 10


@kind(sample=True)
def attention_of_raw_operations():
    yield from through_a_layer(attended, graph=True)
    yield from through_a_function(attended)
    yield from through_a_function(attended, graph=True)


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


@kind(sample=True)
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


@kind(sample=True)
def layer_whose_call_is_counted_by_a_decorator():
    yield from through_a_layer(lambda x, _: tf.tanh(x), of=Decorated, graph=True)
