"""Batch normalization over the whole batch, and layers that normalize each row by itself."""

import numpy as np
import tensorflow as tf

from . import L, compiled, descend, examples, fitted, keras, kind, mlp, some, trained

numbers = np.random.RandomState(0)
IMAGES, LABELS = numbers.rand(40, 8, 8, 1), numbers.randint(0, 3, 40)
SEQUENCES = numbers.rand(24, 5, 4)


def classes():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@kind(bound=1e-9)
def batch_normalization_of_images():
    layers = [L.Conv2D(4, 3), L.BatchNormalization(), L.ReLU(), L.Dropout(0.4), L.MaxPool2D(), L.Flatten()]
    model = keras.Sequential([*layers, L.BatchNormalization(), L.Dense(3)])
    compiled(model, classes(), metrics=["accuracy"])
    yield from fitted(model, IMAGES, LABELS, batch_size=12, epochs=1, validation_data=(IMAGES[:10], LABELS[:10]))


@kind(bound=1e-9, sample=True)
def batch_normalization_of_uneven_rows():
    model = keras.Sequential([L.Dense(8), L.BatchNormalization(), L.Dropout(0.3), L.Dense(1)])
    yield from fitted(compiled(model), *examples(), batch_size=11, epochs=1)


@kind(bound=1e-9, sample=True)
def penalty_through_batch_normalization_of_images():
    """Second derivatives of moments, whose mean has none where one process takes them."""
    critic = keras.Sequential([L.Conv2D(3, 3, 2), L.BatchNormalization(), L.ReLU(), L.Flatten(), L.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)
    critic.build((None, 8, 8, 1))
    for _ in range(2):
        rows = some(9, IMAGES)

        def loss(rows=rows):
            with tf.GradientTape() as inner:
                inner.watch(rows)
                judged = critic(rows, training=True)
            steep = tf.reshape(inner.gradient(judged, rows), [len(rows), -1])
            return tf.reduce_mean((tf.norm(steep, axis=1) - 1) ** 2) + tf.reduce_mean(judged**2)

        yield [critic, optimizer], descend(optimizer, [critic], loss)


@kind(bound=1e-9)
def batch_normalization_of_fewer_rows_than_workers():
    """A batch of two, and one of one: at least one of three workers has no row of its own."""
    x, y = examples()
    net, optimizer = keras.Sequential([L.Dense(8), L.BatchNormalization(), L.Dense(1)]), keras.optimizers.SGD(0.1)
    for count in (4, 2, 1, 3):
        rows, wanted = some(count, x, y)

        def loss(rows=rows, wanted=wanted):
            return tf.reduce_sum((net(rows, training=True) - wanted) ** 2)

        yield [net, optimizer], descend(optimizer, [net], loss)


@kind(bound=1e-9)
def batch_normalization_of_a_batch_of_no_rows():
    """It has no mean: what follows is no number, in one process too."""
    x, y = examples()
    net, optimizer = keras.Sequential([L.Dense(8), L.BatchNormalization(), L.Dense(1)]), keras.optimizers.SGD(0.1)
    net.build((None, 8))

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float64), tf.TensorSpec([None, 1], tf.float64)])
    def step(rows, wanted):
        return descend(optimizer, [net], lambda: tf.reduce_sum((net(rows, training=True) - wanted) ** 2))

    for count in (4, 0, 4):
        yield [net, optimizer], step(*some(count, x, y))


@kind(bound=1e-9)
def batch_normalization_of_frames():
    """Behind a reshape to [B * T, F]: axis 0 is no longer the batch's."""

    class Frames(keras.Model):
        def __init__(self):
            super().__init__()
            self.norm, self.hidden, self.out = L.BatchNormalization(), L.Dense(6), L.Dense(1)

        def call(self, x, training=False):
            frames = self.hidden(tf.reshape(x, [-1, 4]))
            frames = tf.reshape(self.norm(frames, training=training), [-1, 5, 6])
            return self.out(tf.reduce_mean(tf.nn.relu(frames), 1))

    yield from trained(Frames(), SEQUENCES, numbers_like(SEQUENCES), count=7, graph=True)


def numbers_like(array):
    return np.random.RandomState(1).rand(len(array), 1)


@kind(bound=1e-9)
def batch_normalization_of_sequences():
    layers = [L.Conv1D(6, 2), L.BatchNormalization(), L.GlobalMaxPooling1D(), L.Dense(1)]
    yield from trained(keras.Sequential(layers), SEQUENCES, numbers_like(SEQUENCES), count=7, graph=True)


@kind(bound=1e-9)
def batch_normalization_over_channels_first():
    layers = [L.Conv1D(6, 2), L.Permute((2, 1)), L.BatchNormalization(axis=1), L.Flatten(), L.Dense(1)]
    yield from trained(keras.Sequential(layers), SEQUENCES, numbers_like(SEQUENCES), count=7)


@kind(bound=1e-9, keras=3, sample=True)
def batch_normalization_with_a_mask():
    """Steps that are masked count nothing, and each row has its own number of them."""
    tokens = np.random.RandomState(2).randint(0, 4, (24, 5))
    layers = [L.Embedding(4, 6, mask_zero=True), L.BatchNormalization(), L.LSTM(4), L.Dense(1)]
    yield from trained(keras.Sequential(layers), tokens, numbers_like(tokens), count=7)


@kind(bound=1e-9)
def batch_normalization_that_is_frozen():
    x, y = examples()
    norm = L.BatchNormalization()
    net = keras.Sequential([L.Dense(8), norm, L.Dense(1)])
    net(tf.constant(x), training=True)
    norm.trainable = False
    yield from trained(net, x, y)


@kind(bound=1e-9)
def batch_normalization_without_scale_and_with_momentum():
    norm = L.BatchNormalization(momentum=0.7, epsilon=1e-2, center=False, scale=False)
    yield from trained(keras.Sequential([L.Dense(8), norm, L.Dense(1)]), *examples(), count=9, graph=True)


@kind(bound=1e-9)
def batch_normalization_called_twice():
    """Real and generated rows go through it one after the other: moving statistics take both."""
    x, _ = examples()
    net, optimizer = keras.Sequential([L.Dense(8), L.BatchNormalization(), L.Dense(1)]), keras.optimizers.Adam(0.01)
    for _ in range(3):
        rows = some(9, x)

        def loss(rows=rows):
            far = net(rows, training=True) - net(rows[:5] * 2, training=True)[:1]
            return tf.reduce_mean(far**2) + tf.reduce_mean(net(rows, training=False) ** 2)

        yield [net, optimizer], descend(optimizer, [net], loss)


@kind(bound=1e-9)
def batch_normalization_of_nearly_equal_rows():
    """A large mean and a small spread: sums of squares would lose it."""
    x, y = examples()
    net = keras.Sequential([L.BatchNormalization(epsilon=1e-12), L.Dense(1)])
    yield from trained(net, 1e3 + x, y, optimizer=keras.optimizers.SGD(0.1), count=9)


@kind(bound=1e-9)
def batch_normalization_and_a_second_derivative():
    x, y = examples()
    net, optimizer = keras.Sequential([L.Dense(8), L.BatchNormalization(), L.Dense(1)]), keras.optimizers.Adam(0.01)
    for _ in range(2):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(rows)
                out = net(rows, training=True)
            slope = inner.gradient(out, rows)
            loss = tf.reduce_mean((out - wanted) ** 2) + tf.reduce_mean(slope**2)
        gradients = outer.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
        yield [net, optimizer], loss


@kind
def normalization_of_each_row():
    grouped = [L.Conv2D(4, 3), L.GroupNormalization(2), L.Conv2D(4, 3), L.LayerNormalization()]
    model = keras.Sequential([*grouped, L.Flatten(), L.UnitNormalization(), L.Dense(3)])
    yield from trained(model, IMAGES, LABELS, loss=lambda p, y: classes()(y, p), count=7)


@kind
def normalization_adapted_to_the_data():
    x, y = examples()
    norm = L.Normalization()
    norm.adapt(x)
    yield from trained(keras.Sequential([norm, *mlp(8, 1).layers]), x, y, count=9)


@kind(divided="partly", bound=1e-9)
def batch_renormalization_by_hand():
    """A layer that keeps statistics of the batch, and is none of Keras' own: it must see the whole batch."""

    class Moving(L.Layer):
        def build(self, shape):
            self.mean = self.add_weight(shape=shape[-1:], initializer="zeros", trainable=False, name="mean")

        def call(self, x):
            self.mean.assign(0.9 * self.mean + 0.1 * tf.reduce_mean(x, 0))
            return x - self.mean

    yield from trained(keras.Sequential([L.Dense(8), Moving(), L.Dense(1)]), *examples(), graph=True)


@kind(sample=True, divided="partly")
def normalization_over_rows_behind_a_threshold():
    """Nothing comes through of a batch that is made up: that it goes by all rows is what its axis says."""
    x, y = examples(24, 6)
    for over_rows in (L.UnitNormalization(axis=0), L.Softmax(axis=-2)):
        model = keras.Sequential([L.Dense(6), L.ReLU(threshold=10.0), over_rows, L.Dense(1)])
        yield from trained(model, 100 * x, y, graph=True, steps=2)
