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
