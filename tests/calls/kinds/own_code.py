"""Code of the script's own that does by the numbers, the length, the step or a flag what one look would not show."""

import functools

import numpy as np
import tensorflow as tf

from . import L, by_rows, descend, descend_by_hand, examples, keras, kind, some, square, trained

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


@kind(divided="partly")
def function_that_centres_by_a_flag():
    yield from through_a_function(centred_by_a_flag)


@kind(divided="partly", may_refuse=("nothing in this script could be sharded",))
def function_that_centres_large_batches():
    yield from through_a_function(centred_if_large)
    yield from through_a_function(centred_if_large, graph=True)


@kind(divided=False)
def function_with_a_mixture_by_chance():
    yield from through_a_function(sometimes_reversed)


@kind(divided=False)
def function_that_clips_a_gradient():
    yield from through_a_function(clipped)


@kind(divided="beside")
def function_that_keeps_rows_later():
    yield from through_a_function(kept_from_some_time_on)


@kind(divided=False)
def function_that_looks_at_the_largest():
    yield from through_a_function(guarded_by_range)


@kind(divided=False, may_refuse=("draws numbers in Python",))
def function_with_a_generator_in_an_object():
    yield from through_a_function(noisy_by_a_generator)


@kind(divided="beside")
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


def doubled_if_eight(x, layer):
    """No look takes as many rows."""
    del layer
    return x * 2 if x.shape[0] == 8 else x


@kind(divided=False)
def function_of_batches_of_eight():
    yield from through_a_function(doubled_if_eight)
    yield from through_a_function(doubled_if_eight, graph=True)


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


@kind(divided="beside")
def function_that_reads_the_text_of_rows_later():
    yield from through_a_function(scaled_by_the_text_of_rows)


def several_draws_for_a_row(x, layer):
    del layer
    rows = tf.shape(x)[0]
    return x + tf.reshape(tf.random.normal([2 * rows, 3], dtype=x.dtype), [-1, 6]) / 10


@kind
def draws_of_several_rows_for_each():
    yield from through_a_layer(several_draws_for_a_row, graph=True)


def attended(x, layer):
    """A block of a transformer, of raw operations, with positions and sizes that are asked for."""
    del layer
    patches = tf.reshape(x, [tf.shape(x)[0], -1, 2])  # however many
    words = tf.reshape(x, [tf.shape(x)[0], 3, 2]) + tf.reduce_max(patches, axis=1)[:, None]
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


@kind(sample=True, divided="partly")
def functions_of_a_library_as_activations():
    """By the norm of all rows, if that is large: that of a batch which is made up is not."""
    clip = functools.partial(tf.clip_by_norm, clip_norm=30.0)
    clips = [L.Activation(clip), L.Dense(6, clip), L.Lambda(tf.clip_by_norm, arguments={"clip_norm": 30.0})]
    for clipped in clips:
        model = keras.Sequential([L.Dense(8), clipped, L.Dense(1)])
        model.build((None, 6))
        yield from trained(model, 10 * X, Y, graph=True, steps=2)


@kind(divided="partly")
def rows_that_meet_behind_a_gate():
    """Each row against each other one: made-up rows are too near to each other for the gate to let anything through."""
    place = keras.Input((6,))
    score = L.Dense(1, kernel_initializer=keras.initializers.RandomNormal(stddev=0.01, seed=1))(place)
    expand = keras.ops.expand_dims if hasattr(keras, "ops") else tf.expand_dims
    apart = L.ReLU()(expand(score, 0) - expand(score, 1) - 2.0)
    model = keras.Model(place, [score, L.GlobalAveragePooling1D()(apart)])
    optimizer = keras.optimizers.SGD(0.1)
    far = np.random.RandomState(4).normal(size=(24, 6))
    for _ in range(8):
        rows, targets = some(8, far, 5 * far[:, :1])
        with tf.GradientTape() as tape:
            found, spread = model(rows, training=True)
            loss = tf.reduce_mean((found - targets) ** 2) + tf.reduce_mean(spread)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        yield [model, optimizer], loss
