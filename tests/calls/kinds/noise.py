"""Layers that draw: each worker has its rows of what one process draws for the whole batch."""

import numpy as np
import tensorflow as tf

from . import KERAS, L, compiled, descend, examples, fitted, keras, kind, mlp, some, square, trained


def between(*layers, width=8):
    return keras.Sequential([L.Dense(width, activation="relu"), *layers, L.Dense(1)])


def images(count=24):
    numbers = np.random.RandomState(0)
    return numbers.rand(count, 6, 6, 2), numbers.rand(count, 1)


def sequences(count=24):
    numbers = np.random.RandomState(0)
    return numbers.rand(count, 5, 3), numbers.rand(count, 1)


@kind
def dropout():
    yield from trained(between(L.Dropout(0.4), L.Dense(8), L.Dropout(0.2, seed=3)), *examples())


@kind(sample=True)
def dropout_by_seeds_in_fit():
    """In Keras 2 such layers count seeds, one for each time that a model builds itself for another length."""
    net = between(L.Dropout(0.4, seed=2), L.Dense(8), L.Dropout(0.2, seed=3))
    yield from fitted(compiled(net, "mse"), *examples(), epochs=2, batch_size=9)


@kind
def dropout_by_seeds_over_batches_of_different_length():
    x, y = examples()
    net = between(L.Dropout(0.4, seed=2), keras.Sequential([L.Dense(8), L.Dropout(0.2, seed=3)]))
    for count in (8, 5, 8, 6):
        yield from trained(net, x[:count], y[:count], count=count, steps=2)


@kind(sample=True)
def dropout_in_a_graph_with_uneven_rows():
    yield from trained(between(L.Dropout(0.4)), *examples(), graph=True, count=11)


@kind
def dropout_of_whole_rows():
    yield from trained(between(L.Dropout(0.5, noise_shape=(None, 1))), *examples())


@kind
def dropout_of_the_same_columns():
    """One mask for all rows of the batch."""
    yield from trained(between(L.Dropout(0.5, noise_shape=(1, 8))), *examples())


@kind
def gaussian_noise_and_dropout():
    yield from trained(between(L.GaussianNoise(0.3), L.GaussianDropout(0.2)), *examples(), count=9)


@kind
def alpha_dropout():
    yield from trained(between(L.AlphaDropout(0.3)), *examples(), count=9)


@kind
def spatial_dropout_1d():
    net = keras.Sequential([L.Conv1D(6, 2), L.SpatialDropout1D(0.4), L.Flatten(), L.Dense(1)])
    yield from trained(net, *sequences(), count=9)


@kind
def spatial_dropout_2d():
    net = keras.Sequential([L.Conv2D(6, 3), L.SpatialDropout2D(0.4), L.Flatten(), L.Dense(1)])
    yield from fitted(compiled(net), *images(), batch_size=7, epochs=1)


@kind(divided="partly")
def random_images():
    """Layers that change images at random, in the model. TensorFlow 2.15 knows no gradient of the contrast's."""
    augment = [L.RandomFlip("horizontal"), L.RandomContrast(0.2)]
    net = keras.Sequential([*augment, L.Conv2D(4, 3), L.Flatten(), L.Dense(1)])
    yield from trained(net, *images(), count=7, steps=2)


class Noisy(L.Layer):
    def call(self, x):
        return x + 0.1 * tf.random.normal(tf.shape(x), dtype=x.dtype)


@kind(sample=True)
def raw_draws_in_a_layer():
    yield from trained(between(Noisy()), *examples(), graph=True)


class Seeded(L.Layer):
    def call(self, x):
        return x * tf.random.stateless_uniform(tf.shape(x), [1, 2], 0.5, 1.5, x.dtype) + tf.random.normal(
            tf.shape(x), dtype=x.dtype, seed=5
        )


@kind
def seeded_and_stateless_draws_in_a_layer():
    yield from trained(between(Seeded()), *examples())


class StochasticDepth(L.Layer):
    """Whole rows are dropped; the mask is drawn with a seed generator of Keras."""

    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(11)

    def call(self, x, training=False):
        if not training:
            return x
        kept = keras.random.uniform((keras.ops.shape(x)[0], 1), seed=self.seeds, dtype=x.dtype)
        return x * tf.floor(0.8 + kept)


@kind(keras=3)
def stochastic_depth_with_a_seed_generator():
    yield from trained(between(StochasticDepth()), *examples(), graph=True, count=9)


class Both(keras.Model):
    """Two calls of one layer that draws, in one call of the model."""

    def __init__(self):
        super().__init__()
        self.first, self.out, self.dropout = L.Dense(8), L.Dense(1), L.Dropout(0.3)

    def call(self, x, training=False):
        hidden = self.first(self.dropout(x, training=training))
        return self.out(self.dropout(hidden, training=training) + self.dropout(hidden, training=training))


@kind
def one_dropout_called_three_times():
    yield from trained(Both(), *examples())


@kind
def monte_carlo_dropout():
    """Several draws for one batch, and their spread in the loss."""
    x, y = examples()
    net, optimizer = between(L.Dropout(0.3)), keras.optimizers.Adam(0.01)

    def loss(rows, wanted):
        drawn = tf.stack([net(rows, training=True) for _ in range(3)])
        return tf.reduce_mean((tf.reduce_mean(drawn, 0) - wanted) ** 2 + tf.math.reduce_variance(drawn, 0))

    for _ in range(3):
        rows, wanted = some(10, x, y)
        yield [net, optimizer], descend(optimizer, [net], lambda rows=rows, wanted=wanted: loss(rows, wanted))


@kind
def dropout_between_training_and_evaluation():
    """What is drawn while nothing is recorded, between updates."""
    x, y = examples()
    net = between(L.Dropout(0.3), Noisy())
    for things, loss in trained(net, x, y):
        seen = net(tf.constant(x[:7]), training=True)
        yield [*things, seen], loss


class Averaging(tf.Module):
    """An optimizer that makes its variables when it is first called, from numbers as well as from tensors."""

    def __init__(self):
        super().__init__()
        self.means = None

    def apply_gradients(self, pairs):
        pairs = list(pairs)
        if self.means is None:
            self.count = tf.Variable(0.0)
            self.means = [tf.Variable(tf.zeros_like(weight)) for _, weight in pairs]
        self.count.assign_add(1.0)
        for mean, (gradient, weight) in zip(self.means, pairs, strict=True):
            mean.assign(0.9 * mean + 0.1 * gradient)
            weight.assign_sub(0.1 * mean / tf.cast(1.0 - 0.9**self.count, mean.dtype))


def drawn_beside(optimizer, seed=None):
    x, y = examples()
    net = mlp(8, 1)
    net(x[:2])

    @tf.function
    def step(rows, wanted):
        noise = tf.random.normal(tf.shape(rows), dtype=rows.dtype, seed=seed)
        return descend(optimizer, [net], lambda: square(net(rows + noise), wanted)), noise

    for _ in range(4):
        loss, noise = step(*some(9, x, y))
        yield [net, optimizer, noise], loss


@kind(sample=True)
def draws_beside_variables_that_the_first_step_makes():
    """The step is traced anew where they cannot be made outside of it, and draws from the beginning again."""
    yield from drawn_beside(Averaging())


@kind(sample=True)
def initialisers_that_draw_where_a_step_first_comes_to_them():
    """In a `tf.function` a draw has a seed that counts the function's own, and takes none from those that are eager."""

    def drawn(shape, dtype=None):
        return tf.random.normal(shape, stddev=0.3, dtype=dtype)

    x, y = examples()
    net = keras.Sequential([L.Dense(4, "tanh", kernel_initializer=drawn), L.Dense(1, bias_initializer=drawn)])
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function
    def step(rows, wanted):
        return descend(optimizer, [net], lambda: square(net(rows), wanted))

    for _ in range(3):
        loss = step(*some(9, x, y))
        yield [net, tf.random.normal([2])], loss


@kind(sample=True)
def initialisers_that_draw_by_one_seed_in_a_step():
    """Each is an operation of the function's, which begins anew; of those that run eagerly the second goes on."""

    def drawn(shape, dtype=None):
        return tf.random.normal(shape, stddev=0.3, seed=7, dtype=dtype)

    x, y = examples()
    net = keras.Sequential([L.Dense(4, "tanh", kernel_initializer=drawn), L.Dense(1, kernel_initializer=drawn)])
    yield from trained(net, x, y, graph=True, count=9)


class Grown(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = L.Dense(4, "tanh", kernel_initializer=tf.random_normal_initializer(0.0, 0.3))
        self.last = L.Dense(1, kernel_initializer=tf.random_normal_initializer(0.0, 0.3))

    def call(self, x):
        return self.last(self.first(x))


@kind(sample=True)
def initialisers_that_draw_of_a_model_that_fit_builds():
    """Keras builds it outside of the step that it is tracing."""
    yield from fitted(compiled(Grown(), "mse"), *examples(), epochs=2, batch_size=16)


@kind(sample=True)
def variables_that_a_step_copies_and_draws_beside():
    """TensorFlow cannot lift such an initial value, and traces the step once more: what draws in it begins anew."""
    x, y = examples()
    net, slow = mlp(4, 1), []
    net.build((None, x.shape[1]))
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function
    def step(rows, wanted):
        noise = tf.random.normal(tf.shape(rows), stddev=0.3, dtype=rows.dtype)
        loss = descend(optimizer, [net], lambda: square(net(rows + noise), wanted))
        if not slow:
            slow.extend(tf.Variable(lambda v=v: v * 1.0) for v in net.trainable_weights)
        for kept, now in zip(slow, net.trainable_weights, strict=True):
            kept.assign(0.9 * kept + 0.1 * now)
        return loss

    for _ in range(4):
        loss = step(*some(9, x, y))
        yield [net, *slow], loss


@kind(sample=True)
def a_function_that_draws_called_with_a_tape_and_without():
    """One process has one trace of it, whose draws go on."""
    x, y = examples()
    net, optimizer = mlp(4, 1), keras.optimizers.SGD(0.1)

    @tf.function
    def changed(rows):
        return rows + 0.3 * tf.random.normal(tf.shape(rows), dtype=rows.dtype)

    for _ in range(3):
        rows, wanted = some(9, x, y)
        loss = descend(optimizer, [net], lambda rows=rows, wanted=wanted: square(net(changed(rows)), wanted))
        yield [net], [loss, square(net(changed(rows)), wanted)]


@kind
def draws_beside_optimizers_with_a_number_of_their_own():
    names = ("Nadam", "Adafactor") if KERAS == 3 else ("Nadam",)
    for each in names:
        yield from drawn_beside(getattr(keras.optimizers, each)(0.01), seed=3)
