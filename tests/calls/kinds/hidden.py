"""What mixes rows behind numbers that hide it when a look is taken: noughts, and batches that are all alike."""

import numpy as np
import tensorflow as tf

from . import L, descend, examples, keras, kind, square

SIZE = 2  # of the batch, and of each sequence: one row of a mask for each of two workers goes for all words
numbers = np.random.RandomState(0)
ALIKE, SEQUENCES = np.full((SIZE, SIZE, 6), 0.7), numbers.rand(SIZE, SIZE, 6)
LOWER = np.tril(np.ones((SIZE, SIZE)))


def trained_on(call, layers, batches):
    optimizer = keras.optimizers.SGD(0.2)
    for rows in map(tf.constant, batches):
        yield [*layers, optimizer], descend(optimizer, layers, lambda rows=rows: square(call(rows), rows))


def attending(mask):
    """A mask over pairs of words is as long as the batch; the first batches have one word only."""
    net, head = L.MultiHeadAttention(2, 4), L.Dense(6)
    mask = tf.constant(mask)
    batches = (ALIKE, 2 * ALIKE, SEQUENCES, SEQUENCES[::-1], SEQUENCES**2)
    yield from trained_on(lambda rows: head(net(rows, rows, attention_mask=mask)), [net, head], batches)


@kind
def mask_of_flags_as_long_as_the_batch():
    yield from attending(LOWER.astype(bool))


@kind
def mask_of_whole_numbers_as_long_as_the_batch():
    yield from attending(LOWER.astype("int32"))


@kind
def mask_of_numbers_as_long_as_the_batch():
    yield from attending(LOWER)


@kind
def mask_as_long_as_the_batch_before_weights_of_nought():
    rows, mask = keras.Input((SIZE, 6)), keras.Input((SIZE,), dtype="bool")
    attended = L.MultiHeadAttention(2, 4)(rows, rows, attention_mask=mask)
    net = keras.Model([rows, mask], L.Dense(6, kernel_initializer="zeros")(attended))
    lower = tf.constant(LOWER.astype(bool))
    yield from trained_on(lambda rows: net([rows, lower]), [net], [SEQUENCES, SEQUENCES[::-1], SEQUENCES**2])


def gated():
    """A number for each example, by which its features are multiplied; their norm is that over all examples."""
    given = keras.Input((8,))
    features = L.Dense(8, activation="tanh")(given)
    scores = L.Reshape(())(L.Dense(1, kernel_initializer="zeros")(features))
    gates = L.Reshape((1,))(L.UnitNormalization()(scores))
    return keras.Model(given, L.Dense(1)(L.Multiply()([features, gates])))


@kind(divided="partly")
def norm_over_the_batch_behind_weights_of_nought():
    net, (rows, _) = gated(), examples()
    optimizer = keras.optimizers.SGD(0.5)
    for start in (0, 8, 16, 24, 32):
        taken = tf.constant(rows[start : start + 8])
        yield [net], descend(optimizer, [net], lambda taken=taken: square(net(taken), taken[:, :1]))


@kind(divided="partly")
def bag_of_the_whole_batch():
    """Which of some ranges there is a number in: one answer for all rows."""
    bags, net, met = L.Discretization([-1.0, 0.0, 5.0], output_mode="multi_hot"), L.Dense(1), tf.Variable(tf.zeros(4))
    rows = numbers.permutation(np.linspace(-3.0, 8.0, 40))
    bags(tf.constant(rows[:4]))

    @tf.function
    def step(taken):
        with tf.GradientTape() as tape:
            loss, bag = square(net(taken[:, None]), taken[:, None]), bags(taken)
        met.assign_add(tf.cast(bag, met.dtype))
        variables = net.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    net(tf.constant(rows[:4, None]))
    for start in range(0, 40, 8):
        yield [net, met], step(tf.constant(rows[start : start + 8]))
