"""Recurrent layers, masks and attention."""

import numpy as np
import tensorflow as tf

from . import KERAS, L, compiled, descend, fitted, keras, kind, some, trained

numbers = np.random.RandomState(0)
SEQUENCES, TARGETS = numbers.rand(32, 4, 3), numbers.rand(32, 1)
TOKENS = numbers.randint(1, 9, (24, 6))


def classes():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@kind(divided="partly")
def stateful_recurrence():
    """States go from batch to batch, row by row of the batch."""
    layers = [keras.Input(batch_shape=(8, 4, 3)), L.LSTM(5, stateful=True), L.Dense(4, activation="relu"), L.Dense(1)]
    if KERAS == 2:  # Keras 2 has another word for it
        layers[0] = L.InputLayer(batch_input_shape=(8, 4, 3))
    yield from fitted(compiled(keras.Sequential(layers)), SEQUENCES, TARGETS, batch_size=8, epochs=2, shuffle=False)


@kind(divided="partly", sample=True)
def states_of_a_batch_as_short_as_a_look():
    """Keras' layer does not count them among its variables."""
    cell, head, optimizer = L.GRU(5, stateful=True), L.Dense(1), keras.optimizers.SGD(0.1)
    cell.build((4, 4, 3))
    for at in range(0, 24, 4):

        def loss(rows=SEQUENCES[at : at + 4], wanted=TARGETS[at : at + 4]):
            return tf.reduce_mean((head(cell(rows)) - wanted) ** 2)

        yield [cell, head, optimizer], descend(optimizer, [cell, head], loss)


@kind(sample=True)
def masks_of_padding():
    x = np.random.RandomState(0).randint(0, 6, (40, 7))
    x[:, 4:] *= np.random.RandomState(1).rand(40, 3) > 0.5
    y = np.random.RandomState(2).randint(0, 3, (40, 7))
    model = keras.Sequential([L.Embedding(6, 5, mask_zero=True), L.LSTM(6, return_sequences=True), L.Dense(3)])
    yield from fitted(compiled(model, classes(), metrics=["accuracy"]), x, y, batch_size=9, epochs=1)


@kind
def masks_between_calls():
    """A mask leaves one divided call with its tensor, and enters the next."""
    table, cell, head = L.Embedding(6, 4, mask_zero=True), L.GRU(4), L.Dense(1)
    x = np.random.RandomState(0).randint(0, 6, (32, 5))
    models, optimizer = [table, cell, head], keras.optimizers.Adam(0.02)
    for _ in range(3):
        rows, wanted = some(7, x, TARGETS)

        def loss(rows=rows, wanted=wanted):
            return tf.reduce_mean((head(cell(table(rows))) - wanted) ** 2)

        yield [*models, optimizer], descend(optimizer, models, loss)


@kind
def masking_layer():
    x = SEQUENCES * (np.random.RandomState(1).rand(32, 4, 1) > 0.3)
    net = keras.Sequential([L.Masking(), L.SimpleRNN(5), L.Dense(1)])
    yield from trained(net, x, TARGETS, count=9, graph=True)


@kind(sample=True, divided="partly")
def dropout_in_a_recurrence():
    """Keras 2 keeps a cell's mask for its next call, so that the call runs whole."""
    net = keras.Sequential([L.LSTM(5, dropout=0.3, recurrent_dropout=0.2), L.Dense(1)])
    yield from trained(net, SEQUENCES, TARGETS, count=9)


@kind(divided="partly")
def dropout_in_a_recurrence_in_a_graph():
    cells = [L.GRU(5, recurrent_dropout=0.3, return_sequences=True), L.SimpleRNN(4, dropout=0.2)]
    yield from trained(keras.Sequential([*cells, L.Dense(1)]), SEQUENCES, TARGETS, count=9, graph=True)


@kind
def recurrence_over_own_cells():
    cells = L.RNN([L.LSTMCell(4), L.GRUCell(3)])
    yield from trained(keras.Sequential([cells, L.Dense(1)]), SEQUENCES, TARGETS, count=9, graph=True)


@kind
def decoder_in_a_loop():
    """A cell called in a loop, with the state of the call before."""
    table, encoder = L.Embedding(9, 4), L.GRU(6, return_state=True, return_sequences=True)
    decoder, head = L.GRU(6, return_state=True), L.Dense(9)
    models, optimizer = [table, encoder, decoder, head], keras.optimizers.Adam(0.02)

    @tf.function
    def step(source, target):
        def loss():
            total = tf.constant(0.0, tf.float64)
            _, state = encoder(table(source))
            for place in range(3):
                out, state = decoder(table(target[:, place : place + 1]), initial_state=state)
                wanted = target[:, place + 1]
                each = keras.losses.sparse_categorical_crossentropy(wanted, head(out), from_logits=True)
                mask = tf.cast(wanted > 3, tf.float64)
                total += tf.reduce_sum(each * mask) / tf.reduce_sum(mask)
            return total

        return descend(optimizer, models, loss)

    for _ in range(3):
        yield [*models, optimizer], step(*some(8, TOKENS, TOKENS))


@kind
def decoder_that_is_fed_its_own_words():
    """Teacher forcing by a coin for each step; a loop of TensorFlow."""
    table, cell, head = L.Embedding(9, 4), L.GRUCell(6), L.Dense(9)
    models, optimizer = [table, cell, head], keras.optimizers.Adam(0.02)
    for model, shape in ((table, (1,)), (cell, (None, 4)), (head, (None, 6))):
        model.build(shape)

    @tf.function
    def step(target):
        with tf.GradientTape() as tape:
            state, word = tf.zeros([tf.shape(target)[0], 6], tf.float64), target[:, 0]
            total = tf.constant(0.0, tf.float64)
            for place in tf.range(1, 5):
                out, state = cell(table(word), [state])
                state = state[0] if isinstance(state, list | tuple) else state
                logits = head(out)
                wanted = tf.gather(target, place, axis=1)
                each = tf.nn.sparse_softmax_cross_entropy_with_logits(wanted, logits)
                total += tf.reduce_mean(each)
                own = tf.argmax(logits, -1, output_type=target.dtype)
                word = tf.where(tf.random.uniform([], seed=2) < 0.5, wanted, own)
        weights = [v for model in models for v in model.trainable_variables]
        optimizer.apply_gradients(zip(tape.gradient(total, weights), weights, strict=True))
        return total

    optimizer.build([v for model in models for v in model.trainable_variables])
    for _ in range(3):
        yield [*models, optimizer], step(some(7, TOKENS))


class Block(L.Layer):
    """A transformer's block; the mask is an argument of shape (length, length)."""

    def __init__(self):
        super().__init__()
        self.attention = L.MultiHeadAttention(2, 4, dropout=0.2)
        self.norms, self.dropout = [L.LayerNormalization(), L.LayerNormalization()], L.Dropout(0.1)
        self.inner, self.outer = L.Dense(16, activation="gelu"), L.Dense(8)

    def call(self, x, mask, training=False):
        seen = self.attention(x, x, attention_mask=mask, training=training)
        x = self.norms[0](x + self.dropout(seen, training=training))
        return self.norms[1](x + self.outer(self.inner(x)))


class Transformer(keras.Model):
    def __init__(self):
        super().__init__()
        self.table, self.positions, self.block, self.head = L.Embedding(9, 8), L.Embedding(6, 8), Block(), L.Dense(9)

    def call(self, tokens, mask, training=False):
        length = tf.shape(tokens)[1]
        x = self.table(tokens) + self.positions(tf.range(length))
        return self.head(self.block(x, mask, training=training))


def next_word(logits, tokens):
    wanted = tf.roll(tokens, -1, 1)
    return tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(wanted, logits, from_logits=True))


@kind
def transformer_with_a_square_mask():
    net, mask = Transformer(), tf.linalg.band_part(tf.ones((6, 6), tf.bool), -1, 0)

    def call(tokens):
        return net(tokens, mask, training=True)

    yield from trained(net, TOKENS, TOKENS, loss=next_word, call=call, count=7, graph=True)


@kind(sample=True)
def square_mask_of_the_batch_s_length():
    """As many rows as words: the mask's first axis looks like the batch's."""
    net, mask = Transformer(), tf.linalg.band_part(tf.ones((6, 6), tf.bool), -1, 0)

    def call(tokens):
        return net(tokens, mask, training=True)

    yield from trained(net, TOKENS, TOKENS, loss=next_word, call=call, count=6)


@kind
def block_called_with_a_square_mask():
    """The block itself is the outermost call."""
    block, head, optimizer = Block(), L.Dense(1), keras.optimizers.Adam(0.01)
    mask = tf.linalg.band_part(tf.ones((4, 4), tf.bool), -1, 0)
    x = np.random.RandomState(0).rand(32, 4, 8)
    for _ in range(3):
        rows, wanted = some(7, x, TARGETS)

        def loss(rows=rows, wanted=wanted):
            return tf.reduce_mean((head(block(rows, mask, training=True)[:, 0]) - wanted) ** 2)

        yield [block, head, optimizer], descend(optimizer, [block, head], loss)


@kind
def attention_with_masks_of_padding():
    tokens = np.random.RandomState(1).randint(0, 4, (32, 5))
    words = keras.Input((5,), dtype="int64")
    x = L.Embedding(4, 8, mask_zero=True)(words)
    x = L.MultiHeadAttention(2, 4)(x, x)
    model = keras.Model(words, L.Dense(1)(L.GlobalAveragePooling1D()(x)))
    yield from fitted(compiled(model), tokens, TARGETS, batch_size=9, epochs=1)


class Attending(keras.layers.Layer):
    """A softmax along the words, for which TensorFlow swaps axes."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.score = L.Dense(5), L.Dense(5), L.Dense(1)

    def call(self, query, values):
        scores = self.score(tf.tanh(self.query(query[:, None]) + self.key(values)))
        return tf.reduce_sum(tf.nn.softmax(scores, axis=1) * values, 1)


@kind(sample=True)
def decoder_with_attention_from_a_state_of_zeros():
    """What `tf.zeros` gives has an attribute of TensorFlow's own."""
    encoder, attending = L.GRU(5, return_sequences=True, return_state=True), Attending()
    layers, optimizer = [encoder, attending, L.Dense(1)], keras.optimizers.Adam(0.02)

    def decoded(rows):
        words, state = encoder(rows, initial_state=tf.zeros((len(rows), 5), tf.float64))
        return layers[-1](attending(state, words) + attending(state**2, words))

    @tf.function
    def step(rows, wanted):
        return descend(optimizer, layers, lambda: tf.reduce_mean((decoded(rows) - wanted) ** 2))

    for _ in range(3):
        yield [*layers, optimizer], step(*some(8, SEQUENCES, TARGETS))


class Scaling(keras.layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, words):
        return words * self.scale


@kind
def recurrence_from_a_state_that_is_trained():
    """A worker has one row: of the words it is handed by the layer before, of the state cut."""
    first, cell, head = layers = [Scaling(), L.GRU(5, return_sequences=True), L.Dense(1)]
    state, optimizer = tf.Variable(np.full((1, 5), 0.1)), keras.optimizers.SGD(0.1)
    head(cell(first(tf.constant(SEQUENCES[:2]))))

    def found(rows):
        return head(cell(first(rows), initial_state=tf.repeat(state, len(rows), 0))[:, -1])

    @tf.function
    def step(rows, wanted):
        return descend(optimizer, layers, lambda: tf.reduce_mean((found(rows) - wanted) ** 2))

    for size in (4, 2, 2):
        yield [*layers, optimizer], step(*some(size, SEQUENCES, TARGETS))
