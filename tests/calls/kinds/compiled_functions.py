"""Networks in a function that is compiled, and called in places of several kinds."""

import threading

import tensorflow as tf

from . import examples, keras, kind, mlp, some, square
from .tapes import apply


@kind(sample=True)
def compiled_network_mapped_over_samples():
    """A function that has been traced for a tape is traced again for a parallel graph, which knows no exchanges."""
    x, y = examples()
    net, optimizer = mlp(8, 6, 1), keras.optimizers.SGD(0.1)
    net.build((None, 8))
    compiled = tf.function(net)
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as tape:
            loss = square(compiled(rows), wanted)
            spread = tf.vectorized_map(compiled, tf.stack([rows, rows + 0.1, rows * 0.9]))
            loss /= 1.0 + tf.reduce_mean(tf.math.reduce_std(spread, 0))
        apply(optimizer, tape.gradient(loss, net.trainable_variables), net.trainable_variables)
        yield [net, optimizer], loss


@kind(sample=True)
def compiled_network_called_before_training_and_in_a_thread():
    """A function has traces of its own for tapes, and for threads, which know of no exchanges."""
    x, y = examples()
    net, optimizer = mlp(8, 6, 1), keras.optimizers.SGD(0.1)
    net.build((None, 8))
    compiled, watched = tf.function(net), []
    before = tf.reduce_mean(compiled(tf.constant(x[:9])))
    for _ in range(3):
        rows, wanted = some(9, x, y)
        watcher = threading.Thread(target=lambda rows=rows: watched.append(tf.reduce_mean(compiled(rows + 1.0))))
        watcher.start()
        with tf.GradientTape() as tape:
            loss = square(compiled(rows), wanted) + before
        watcher.join()
        apply(optimizer, tape.gradient(loss, net.trainable_variables), net.trainable_variables)
        yield [net, optimizer], loss + watched[-1]


class Lazy(tf.Module):
    """A layer of the script's own that makes its weights where it is called first."""

    def __init__(self, units, seed):
        super().__init__()
        self.units, self.seed, self.is_built = units, seed, False
        self.spare = tf.Variable(0.0, trainable=False)

    def __call__(self, x):
        if not self.is_built:
            started = tf.random.stateless_uniform([x.shape[1], self.units], self.seed, -1.0, 1.0, tf.float64)
            self.weight = tf.Variable(started)
            self.is_built, self.spare = True, None  # as many variables are there as before
        return tf.tanh(x @ self.weight)


class Lazily(tf.Module):
    """A network of them that is compiled."""

    def __init__(self):
        super().__init__()
        self.layers = [Lazy(4, [1, 2]), Lazy(1, [3, 4])]

    @tf.function
    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@kind(sample=True)
def compiled_layers_that_make_their_weights_where_they_are_called_first():
    x, y = examples()
    net, optimizer = Lazily(), keras.optimizers.SGD(0.1)
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as tape:
            loss = square(net(rows), wanted)
        apply(optimizer, tape.gradient(loss, net.trainable_variables), net.trainable_variables)
        yield net.trainable_variables, loss + tf.reduce_sum(net(rows[:2]))


@kind(sample=True)
def compiled_layer_that_builds_itself_and_is_called_without_a_tape():
    x, y = examples()
    layer, optimizer = keras.layers.Dense(1), keras.optimizers.SGD(0.1)
    compiled = tf.function(lambda rows: tf.tanh(layer(rows)))
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as tape:
            loss = square(compiled(rows), wanted)
        apply(optimizer, tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
        yield [layer, optimizer], loss + tf.reduce_sum(compiled(rows))
