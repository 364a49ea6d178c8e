"""Embeddings, whose gradients are slices, and weights that are used inside of calls and outside."""

import numpy as np
import tensorflow as tf

from . import L, by_rows, descend, keras, kind, some, square, trained

numbers = np.random.RandomState(0)
TOKENS, TARGETS = numbers.randint(0, 12, (40, 6)), numbers.rand(40, 1)


def embedded():
    return keras.Sequential([L.Input((6,)), L.Embedding(12, 4), L.Flatten(), L.Dense(1)])


@kind
def embedding_with_adam():
    yield from trained(embedded(), TOKENS, TARGETS, count=9)


@kind
def embedding_with_each_optimizer():
    names = ("SGD", "Adagrad", "RMSprop", "Ftrl", "Nadam")
    for optimizer in (getattr(keras.optimizers, name)(0.02) for name in names):
        yield from trained(embedded(), TOKENS, TARGETS, optimizer=optimizer, count=7, steps=2)


class TokensAndPositions(L.Layer):
    """All rows use the same rows of the second table."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = L.Embedding(12, 4), L.Embedding(6, 4)

    def call(self, tokens):
        return self.tokens(tokens) + self.positions(tf.range(tf.shape(tokens)[-1]))


@kind(sample=True)
def token_and_position_embeddings():
    net = keras.Sequential([TokensAndPositions(), L.GlobalAveragePooling1D(), L.Dense(1)])
    yield from trained(net, TOKENS, TARGETS, count=9, graph=True)


@kind(sample=True)
def slots_of_touched_rows_alone():
    """A momentum that moves only those rows of the table the batch has: one more or less is another training."""
    net = embedded()
    net(TOKENS[:1])
    table = net.layers[0].embeddings
    momentum = tf.Variable(tf.zeros_like(tf.convert_to_tensor(table)))
    optimizer = keras.optimizers.SGD(0.1)
    for _ in range(4):
        tokens, wanted = some(5, TOKENS, TARGETS)
        with tf.GradientTape() as tape:
            loss = square(net(tokens), wanted)
        slices, *others = tape.gradient(loss, net.trainable_variables)
        touched, places = tf.unique(tf.reshape(slices.indices, [-1]))
        summed = tf.math.unsorted_segment_sum(slices.values, places, tf.size(touched))
        momentum.scatter_update(tf.IndexedSlices(0.9 * tf.gather(momentum, touched) + summed, touched))
        table.assign(tf.tensor_scatter_nd_sub(table, touched[:, None], 0.1 * tf.gather(momentum, touched)))
        optimizer.apply_gradients(zip(others, net.trainable_variables[1:], strict=True))
        yield [net, optimizer, momentum], loss


@kind(sample=True)
def table_of_a_layer_gathered_outside():
    """Half of the table's gradient comes through a divided call, half past it."""
    table, head, optimizer = L.Embedding(12, 4), L.Dense(4), keras.optimizers.Adam(0.02)
    table(TOKENS[:1])
    for _ in range(3):
        tokens, wanted = some(9, TOKENS, TARGETS)

        def loss(tokens=tokens, wanted=wanted):
            context = head(tf.reduce_mean(table(tokens[:, :5]), 1))
            target = tf.gather(tf.convert_to_tensor(table.embeddings), tokens[:, 5])
            return square(tf.reduce_sum(context * target, 1, keepdims=True), wanted)

        yield [table, head, optimizer], descend(optimizer, [table, head], loss)


@kind
def output_layer_tied_to_the_table():
    class Tied(keras.Model):
        def __init__(self):
            super().__init__()
            self.table, self.cell = L.Embedding(12, 5), L.GRU(5, return_sequences=True)

        def call(self, tokens):
            return tf.einsum("btd,vd->btv", self.cell(self.table(tokens)), tf.convert_to_tensor(self.table.embeddings))

    def loss(logits, tokens):
        each = keras.losses.sparse_categorical_crossentropy(tokens[:, 1:], logits[:, :-1], from_logits=True)
        return tf.reduce_mean(each)

    yield from trained(Tied(), TOKENS, TOKENS, loss=loss, count=7, graph=True)


@kind
def kernel_used_in_a_call_and_outside():
    """An autoencoder whose decoder is the encoder's kernel, transposed; and a penalty of the kernel."""
    x = np.random.RandomState(0).rand(40, 8)
    encoder, optimizer = L.Dense(3, activation="tanh"), keras.optimizers.Adam(0.02)
    for _ in range(3):
        rows = some(9, x)

        def loss(rows=rows):
            decoded = tf.matmul(encoder(rows), tf.convert_to_tensor(encoder.kernel), transpose_b=True)
            return square(decoded, rows) + 0.01 * tf.reduce_sum(tf.convert_to_tensor(encoder.kernel) ** 2)

        yield [encoder, optimizer], descend(optimizer, [encoder], loss)


@kind
def sampled_softmax_and_negatives():
    """Word vectors with negatives that are drawn for the whole batch."""
    words, contexts = L.Embedding(12, 4), L.Embedding(12, 4)
    optimizer = keras.optimizers.Adam(0.02)

    @tf.function
    def step(tokens):
        def loss():
            drawn = tf.random.uniform([tf.shape(tokens)[0], 3], maxval=12, dtype=tf.int32, seed=4)
            near = tf.reduce_sum(words(tokens[:, 0]) * contexts(tokens[:, 1]), -1)
            far = tf.einsum("bd,bkd->bk", words(tokens[:, 0]), contexts(drawn))
            return -tf.reduce_mean(tf.math.log_sigmoid(near)) - tf.reduce_mean(tf.math.log_sigmoid(-far))

        return descend(optimizer, [words, contexts], loss)

    for _ in range(3):
        yield [words, contexts, optimizer], step(some(9, TOKENS))


@kind
def matrix_factorization():
    """Two towers of one column each, and a product of all users with all items of the batch."""
    users, items, optimizer = L.Embedding(12, 4), L.Embedding(12, 4), keras.optimizers.Adagrad(0.1)
    for _ in range(3):
        tokens = some(7, TOKENS)

        def loss(tokens=tokens):
            scores = tf.matmul(users(tokens[:, 0]), items(tokens[:, 1]), transpose_b=True)
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(7), scores))

        yield [users, items, optimizer], descend(optimizer, [users, items], loss)


class Padded(L.Embedding):
    """What it looks up is Keras' own work, what it masks the script's."""

    def compute_mask(self, tokens, mask=None):
        del mask
        return tokens > 2


@kind(sample=True)
def embedding_with_a_mask_of_its_own():
    net = keras.Sequential([Padded(12, 4, mask_zero=True), L.LSTM(4), L.Dense(1)])
    net(TOKENS[:2])
    yield from trained(net, TOKENS, TARGETS, count=9, graph=True)


def scored_by_tables(graph):
    """Users and items in variables, each with a bias, and negatives; rows of both are decayed as they are met."""
    numbers = np.random.RandomState(1)
    users, items = (tf.Variable(0.1 * numbers.normal(size=(12, 4))) for _ in range(2))
    of_users, of_items, mean = (tf.Variable(np.zeros(size)) for size in (12, 12, ()))
    weights, optimizer = [users, items, of_users, of_items, mean], keras.optimizers.Adagrad(0.1)

    @by_rows
    def score(user, item):
        both = tf.gather(users, user) * tf.nn.embedding_lookup(items, item)
        return mean + tf.gather(of_users, user) + tf.gather_nd(of_items, item[:, None]) + tf.reduce_sum(both, -1)

    def step(tokens, wanted):
        with tf.GradientTape() as tape:
            near, far = score(tokens[:, 0], tokens[:, 1]), score(tokens[:, 0], tokens[:, 2])
            decay = tf.nn.l2_loss(tf.gather(users, tokens[:, 0])) + tf.nn.l2_loss(tf.gather(items, tokens[:, 1]))
            value = square(near, wanted[:, 0]) - tf.reduce_mean(tf.math.log_sigmoid(near - far)) + 0.01 * decay
        optimizer.apply_gradients(zip(tape.gradient(value, weights), weights, strict=True))
        return value

    step = tf.function(step) if graph else step
    for _ in range(4):
        yield [*weights, optimizer], step(*some(7, TOKENS, TARGETS))


@kind(divided=False)
def factors_in_variables():
    yield from scored_by_tables(graph=False)


@kind(sample=True)
def factors_in_variables_in_a_graph():
    yield from scored_by_tables(graph=True)


class Words(tf.Module):
    """Tables of a module's own: for the words of each row, and for the positions, which all rows share."""

    def __init__(self):
        super().__init__()
        numbers = np.random.RandomState(2)
        self.words, self.positions = (tf.Variable(numbers.normal(size=(size, 4))) for size in (12, 6))
        self.out = tf.Variable(numbers.normal(size=(4, 1)))

    def __call__(self, tokens):
        found = tf.nn.embedding_lookup(self.words, tokens) + tf.gather(self.positions, tf.range(6))
        return tf.reduce_mean(tf.tanh(found), 1) @ self.out


@kind(sample=True)
def module_with_tables():
    net, optimizer = Words(), keras.optimizers.Adam(0.02)

    @tf.function
    def step(tokens, wanted):
        with tf.GradientTape() as tape:
            value = square(net(tokens), wanted)
        weights = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, weights), weights, strict=True))
        return value

    for count in (9, 9, 8):
        yield [*net.trainable_variables, optimizer], step(*some(count, TOKENS, TARGETS))


class Table(L.Layer):
    """A layer that looks up in a variable of its own."""

    def __init__(self):
        super().__init__()
        self.table = tf.Variable(np.random.RandomState(2).normal(size=(12, 4)))

    def call(self, tokens):
        return tf.gather(self.table, tf.cast(tokens, tf.int32))


@kind
def layer_with_a_table_of_its_own():
    yield from trained(keras.Sequential([Table(), L.Flatten(), L.Dense(1)]), TOKENS, TARGETS, count=9, graph=True)
