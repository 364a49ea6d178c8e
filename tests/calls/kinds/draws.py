"""Draws of the script itself, of every kind of generator: equal on all workers, and those of one process."""

import functools
import random

import numpy as np
import tensorflow as tf

from . import L, descend, examples, keras, kind, mlp, some, square

X, Y = examples()


def drawn_by(draw, steps=3):
    """Trains on rows that `draw()` gives numbers for; what was drawn is yielded, too."""
    net, optimizer = mlp(8, 1), keras.optimizers.SGD(0.1)
    for _ in range(steps):
        chosen = np.argsort(np.ravel(np.array(draw(), dtype=np.float64)))[:9]
        rows, wanted = tf.constant(X[chosen]), tf.constant(Y[chosen])

        def loss(rows=rows, wanted=wanted):
            return square(net(rows), wanted)

        yield [net, optimizer, chosen], descend(optimizer, [net], loss)


@kind(sample=True)
def unseeded_generators_of_numpy():
    for generator in (np.random.default_rng(), np.random.Generator(np.random.PCG64()), np.random.RandomState()):
        yield from drawn_by(lambda generator=generator: generator.normal(size=64), steps=1)
    yield from drawn_by(lambda: np.random.default_rng().random(64), steps=2)
    yield from drawn_by(lambda: np.random.Generator(np.random.Philox()).random(64), steps=2)


@kind
def generators_made_of_a_seed_sequence():
    first, second = np.random.SeedSequence().spawn(2)
    for seeds in (first, second):
        yield from drawn_by(lambda seeds=seeds: np.random.default_rng(seeds).random(64), steps=2)


@kind
def unseeded_generators_of_python():
    generator = random.Random()
    yield from drawn_by(lambda: [generator.random() for _ in range(64)])
    random.seed()
    np.random.seed()
    yield from drawn_by(lambda: [random.gauss(0, 1) + np.random.rand() for _ in range(64)])


@kind(sample=True)
def unseeded_draws_of_tensorflow():
    yield from drawn_by(lambda: tf.random.uniform([64]))
    generators = tf.random.get_global_generator(), tf.random.Generator.from_non_deterministic_state()
    for generator in generators:
        yield from drawn_by(lambda generator=generator: generator.normal([64]), steps=2)


@kind
def seeded_draws_of_tensorflow():
    tf.random.set_seed(3)
    generator = tf.random.Generator.from_seed(5)
    yield from drawn_by(lambda: tf.random.uniform([64], seed=4) + generator.uniform([64]))
    yield from drawn_by(tf.function(lambda: tf.random.normal([64], seed=4) + tf.random.normal([64])))


@kind
def stateless_draws():
    step = tf.Variable(0, dtype=tf.int32)

    def draw():
        step.assign_add(1)
        seeds = tf.random.experimental.stateless_fold_in([1, 2], step)
        return tf.random.stateless_uniform([64], seeds) + tf.random.stateless_normal([64], seeds)

    yield from drawn_by(draw)


@kind(keras=3)
def unseeded_generators_of_keras():
    seeds = keras.random.SeedGenerator()
    yield from drawn_by(lambda: keras.random.normal((64,), seed=seeds))
    yield from drawn_by(lambda: keras.random.uniform((64,)))


@kind
def order_of_a_set():
    """The order of strings in a set is another one in each process, unless somebody sees to it."""

    def draw():
        names = {f"row {number}" for number in range(64)}
        return [float(name.split()[1]) * 7 % 64 for name in names]

    yield from drawn_by(draw)


@kind
def unseeded_initializers():
    """Layers made in the midst of training, from what was drawn until then."""
    layers, optimizer = [], keras.optimizers.SGD(0.1)
    for width in (4, 8):
        tf.random.uniform([width])
        layers.append(L.Dense(8, activation="tanh", kernel_initializer="he_uniform"))
        rows, wanted = tf.constant(X[:9]), tf.constant(Y[:9])

        def loss(rows=rows, wanted=wanted):
            for layer in layers:
                rows = layer(rows)
            return square(tf.reduce_sum(rows, 1, keepdims=True), wanted)

        with tf.GradientTape() as tape:
            value = loss()
        weights = [v for layer in layers for v in layer.trainable_variables]
        for weight, found in zip(weights, tape.gradient(value, weights), strict=True):
            weight.assign_sub(0.1 * found)
        yield [*layers, optimizer], value


@kind
def generator_seeded_by_a_loss():
    """What is drawn follows from what was learnt, to the sixth digit."""
    net, optimizer, seed = mlp(8, 1), keras.optimizers.SGD(0.1), 1
    for _ in range(4):
        chosen = np.random.default_rng(seed).permutation(64)[:9]
        rows, wanted = tf.constant(X[chosen]), tf.constant(Y[chosen])

        def loss(rows=rows, wanted=wanted):
            return square(net(rows), wanted)

        value = descend(optimizer, [net], loss)
        seed = round(float(value) * 1e6)
        yield [net, optimizer, chosen], value


@kind
def noise_before_and_behind_a_call():
    net, optimizer = mlp(8, 8), keras.optimizers.Adam(0.01)

    @tf.function
    def step(rows):
        def loss():
            noisy = rows + 0.1 * tf.random.normal(tf.shape(rows), dtype=rows.dtype)
            out = net(noisy)
            return square(out + 0.1 * tf.random.normal(tf.shape(out), dtype=out.dtype), rows)

        return descend(optimizer, [net], loss)

    for number in range(3):
        yield [net, optimizer], step(tf.constant(X[number * 9 : number * 9 + 9]))


@kind(keras=3, divided="partly")
def layer_of_keras_that_draws_by_python():
    """A look at it takes none of Python's numbers away."""
    images = np.random.RandomState(3).rand(9, 6, 6, 3) * 255
    augment, net = (L.AugMix(seed=3) if hasattr(L, "AugMix") else L.Dropout(0.5)), mlp(8, 1)
    optimizer = keras.optimizers.SGD(1e-3)
    for _ in range(2):

        def loss():
            return tf.reduce_mean(net(tf.reshape(augment(images, training=True), [9, -1])[:, :8]) ** 2) / 1e4

        yield [net, optimizer, np.array([random.random(), np.random.rand()])], descend(optimizer, [net], loss)


@kind(sample=True, keras=3)
def draws_by_a_generator_that_a_step_makes():
    """As Keras makes the one of draws without a seed, in the first trace of the first step that has such."""
    x, y = examples()
    net, generators = mlp(8, 6, 1), []
    net.build((None, 8))
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function
    def step(rows, wanted):
        if not generators:
            generators.append(keras.random.SeedGenerator(5))
        moved = rows + keras.random.normal(tf.shape(rows), seed=generators[0])
        return descend(optimizer, [net], lambda: square(net(moved, training=True), wanted))

    for _ in range(3):
        yield [net, optimizer], step(*some(9, x, y))


@kind(divided="partly")
def single_images_that_are_flipped():
    """The first axis of an image without a batch is its height."""
    images, targets = np.random.RandomState(0).rand(6, 8, 8, 3), np.random.RandomState(1).rand(4, 1)
    pool, head, optimizer = L.AveragePooling2D(4), L.Dense(1), keras.optimizers.SGD(0.1)
    flips = [L.RandomFlip("vertical", seed=each) for each in range(6)]  # a look draws for some that nothing be flipped
    for _ in range(4):
        chosen = some(4, images)

        def loss(chosen=chosen):
            seen = [functools.reduce(lambda image, flip: flip(image, training=True), flips, each) for each in chosen]
            return square(head(tf.reshape(pool(tf.stack(seen)), (4, 12))), targets)

        yield [head, *flips, optimizer], descend(optimizer, [head], loss)


class Jitters(L.Layer):
    """Draws by the generator of all who name none, which the first draw makes of a seed of Python's."""

    def call(self, inputs, training=None):
        if not training:
            return inputs
        return inputs + 0.1 * keras.random.normal((keras.ops.shape(inputs)[0], 6), dtype=inputs.dtype)


@kind(keras=3, sample=True)
def generator_of_all_that_a_call_makes():
    """What Python draws next goes on behind that seed."""
    for graph in (True, False):
        keras.backend.clear_session()  # with it such a generator goes
        net = keras.Sequential([L.Dense(6), Jitters(), L.Dense(1)])
        net.build((None, 8))
        optimizer = keras.optimizers.SGD(0.1)
        optimizer.build(net.trainable_variables)

        def step(rows, wanted, net=net, optimizer=optimizer):
            with tf.GradientTape() as tape:
                loss = square(net(rows, training=True), wanted)
            gradients = tape.gradient(loss, net.trainable_variables)
            optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
            return loss

        step = tf.function(step) if graph else step
        for _ in range(3):
            yield [net, optimizer], step(*some(9, X, Y)) + random.random()
