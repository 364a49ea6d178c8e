"""Losses that are no means over rows, or that see the batch as a whole."""

import numpy as np
import tensorflow as tf

from . import L, compiled, descend, examples, fitted, keras, kind, mlp, some, square, trained


@kind(sample=True)
def mean_square():
    yield from trained(mlp(16, 1), *examples())


@kind
def root_of_a_mean():
    yield from trained(mlp(16, 1), *examples(), loss=lambda p, y: tf.sqrt(square(p, y)), graph=True)


@kind(sample=True)
def targets_broadcast_by_mistake():
    """(B,) minus (B, 1) is (B, B): every row meets every other."""
    x, y = examples()
    yield from trained(mlp(16, 1), x, y[:, 0])


@kind
def contrastive_pairs():
    x, _ = examples()
    net, optimizer = mlp(16, 6), keras.optimizers.Adam(0.01)

    @tf.function
    def step(first, second):
        def loss():
            a, b = tf.math.l2_normalize(net(first), 1), tf.math.l2_normalize(net(second), 1)
            alike = tf.matmul(a, b, transpose_b=True) / 0.1
            places = tf.range(tf.shape(alike)[0])
            return tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(places, alike, from_logits=True))

        return descend(optimizer, [net], loss)

    for _ in range(3):
        rows = some(12, x)
        yield [net, optimizer], step(rows, rows + 0.1)


@kind
def hardest_triplets():
    x, y = examples()
    labels = (y[:, 0] * 3).astype(int)

    def loss(embedded, label):
        far = tf.reduce_sum((embedded[:, None] - embedded[None]) ** 2, -1)
        same = tf.cast(label[:, None] == label[None], far.dtype)
        hardest = tf.reduce_max(far * same, 1) - tf.reduce_min(far + 9 * same, 1)
        return tf.reduce_mean(tf.nn.relu(hardest + 0.5))

    optimizer = keras.optimizers.SGD(0.1)  # the last bias has a gradient of rounding alone, which Adam would enlarge
    yield from trained(mlp(16, 4), x, labels, optimizer=optimizer, loss=loss, count=11)


@kind
def weights_counted_in_the_batch():
    x, y = examples()
    labels = (y[:, 0] > 0.7).astype(float)

    def loss(logits, label):
        positive = tf.reduce_mean(label)
        weight = tf.where(label > 0, 1 - positive, positive)
        return tf.reduce_sum(weight * tf.nn.sigmoid_cross_entropy_with_logits(label, logits[:, 0]))

    yield from trained(mlp(16, 1), x, labels, loss=loss, graph=True)


@kind(sample=True)
def slices_trimmed_to_the_longest():
    """The length of a batch is that of its longest row: shapes that are known to no graph."""
    numbers = np.random.RandomState(0)
    lengths = numbers.randint(1, 7, 40)
    tokens = numbers.randint(1, 9, (40, 7)) * (np.arange(7) < lengths[:, None])
    wanted = numbers.randint(0, 3, (40, 7))
    net = keras.Sequential([L.Embedding(9, 5), L.GRU(6, return_sequences=True), L.Dense(3)])
    optimizer = keras.optimizers.Adam(0.02)

    @tf.function(reduce_retracing=True)
    def step(tokens, length, wanted):
        longest = tf.reduce_max(length)
        tokens, wanted = tokens[:, :longest], wanted[:, :longest]
        mask = tf.sequence_mask(length, longest, dtype=tf.float64)

        def loss():
            each = keras.losses.sparse_categorical_crossentropy(wanted, net(tokens), from_logits=True)
            return tf.reduce_sum(each * mask) / tf.reduce_sum(mask)

        return descend(optimizer, [net], loss)

    for _ in range(4):
        yield [net, optimizer], step(*some(9, tokens, lengths, wanted))


class LargestOf(L.Layer):
    """A loss of the three worst rows, added by a layer that sees the targets."""

    def call(self, wanted, predicted):
        self.add_loss(tf.reduce_sum(tf.math.top_k((wanted - predicted)[:, 0] ** 2, 3)[0]))
        return predicted


@kind(divided="partly")
def loss_added_by_a_layer_with_targets():
    x, y = examples()
    rows, targets = keras.Input((8,)), keras.Input((1,))
    predicted = L.Dense(1)(L.Dense(16, activation="relu")(rows))
    model = keras.Model([rows, targets], LargestOf()(targets, predicted))
    yield from fitted(compiled(model, None), [x, y], batch_size=10, epochs=2)


class Sampling(L.Layer):
    def call(self, inputs):
        mean, log_variance = inputs
        drawn = tf.random.normal(tf.shape(mean), dtype=mean.dtype, seed=3)
        self.add_loss(-0.05 * tf.reduce_mean(1 + log_variance - mean**2 - tf.exp(log_variance)))
        return mean + tf.exp(0.5 * log_variance) * drawn


@kind(divided="partly", sample=True)
def variational_autoencoder():
    x, _ = examples()
    rows = keras.Input((8,))
    hidden = L.Dense(16, activation="relu")(rows)
    model = keras.Model(rows, L.Dense(8)(Sampling()([L.Dense(3)(hidden), L.Dense(3)(hidden)])))
    yield from fitted(compiled(model), x, x, batch_size=16, epochs=2)


class Penalised(keras.Model):
    """`add_loss` in the model's own call, of its activations."""

    def __init__(self):
        super().__init__()
        self.hidden, self.out = L.Dense(8, activation="tanh"), L.Dense(1)

    def call(self, x):
        hidden = self.hidden(x)
        self.add_loss(0.1 * tf.reduce_mean(tf.abs(hidden)))
        return self.out(hidden)


@kind(divided="partly")
def loss_added_in_a_model():
    model = Penalised()
    yield from trained(model, *examples(), loss=lambda p, y: square(p, y) + sum(model.losses))


@kind(divided="partly")
def regularizers_of_weights_and_activities():
    x, y = examples()
    rows = keras.Input((8,))
    hidden = L.Dense(16, activation="relu", kernel_regularizer="l2", activity_regularizer="l2")(rows)
    model = keras.Model(rows, {"a": L.Dense(1, name="a")(hidden), "b": L.Dense(3, name="b")(hidden)})
    sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    compiled(model, {"a": "mse", "b": sparse}, loss_weights={"a": 1.0, "b": 0.3})
    yield from fitted(model, x, {"a": y, "b": np.arange(64) % 3}, batch_size=10, epochs=2)


@kind
def gradients_clipped_by_global_norm():
    x, y = examples()
    net, optimizer = mlp(16, 1), keras.optimizers.SGD(0.5)
    for _ in range(3):
        rows, wanted = some(11, x, y)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((net(rows) - wanted) ** 2)
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, net.trainable_variables), 0.3)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
        yield [net, optimizer, norm], loss


@kind
def clipping_by_the_optimizer():
    optimizer = keras.optimizers.Adam(0.05, global_clipnorm=0.1)
    yield from trained(mlp(16, 1), *examples(), optimizer=optimizer, graph=True)


@kind(sample=True)
def part_of_the_loss_in_python():
    """TensorFlow takes its gradient in a thread of its own."""

    def loss(predicted, wanted):
        penalty = tf.py_function(lambda given: tf.reduce_sum(given**2) / len(given), [predicted], tf.float64)
        return square(predicted, wanted) + penalty / 10

    for graph in (False, True):
        yield from trained(mlp(6, 1), *examples(), loss=loss, graph=graph)
