"""What few scripts have: states that a batch moves, rows that meet now and then, results of all kinds."""

import numpy as np
import tensorflow as tf

from . import L, compiled, descend, examples, fitted, keras, kind, mlp, some, square, trained

X, Y = examples(48)
FRAMES, TARGETS = examples(40, 30)[0].reshape(40, 6, 5), examples(40)[1]


@kind(divided="partly", keras=3)
def normalization_by_the_spectrum():
    """That of Keras 2.15 fails in a graph, alone, too."""
    model = keras.Sequential([L.SpectralNormalization(L.Dense(6)), L.Dropout(0.3), L.Dense(1)])
    yield from fitted(compiled(model), X, Y, batch_size=11, epochs=2)


@kind
def convolution_within_a_recurrence():
    model = keras.Sequential([L.ConvLSTM2D(3, 3, padding="same"), L.Flatten(), L.Dense(1)])
    yield from trained(model, examples(20, 150)[0].reshape(20, 3, 5, 5, 2), TARGETS[:20], count=7)


@kind(keras=3)
def dense_layer_by_a_formula_and_recomputed():
    with keras.RematScope(mode="full"):
        inner = L.EinsumDense("abc,cd->abd", output_shape=(None, 4), bias_axes="d", activation="tanh")
        model = keras.Sequential([inner, L.Dropout(0.4), L.GlobalAveragePooling1D(), L.Dense(1)])
    yield from trained(model, FRAMES, TARGETS, count=7)


@kind(keras=3, bound=1e-6)
def adapters_of_low_rank():
    """Keras keeps those in float32."""
    dense = L.Dense(6)
    model = keras.Sequential([keras.Input((8,)), dense, L.Dense(1)])
    dense.enable_lora(2)
    yield from fitted(compiled(model), X, Y, batch_size=11, epochs=2)


class Codebook(L.Layer):
    """Each row becomes the nearest of six vectors, which the batch moves."""

    def __init__(self):
        super().__init__()
        self.vectors = self.add_weight(shape=(6, 4), initializer="random_normal", trainable=False, name="vectors")

    def call(self, rows, training=False):
        vectors = tf.convert_to_tensor(self.vectors)
        nearest = tf.argmin(tf.reduce_sum((rows[:, None] - vectors[None]) ** 2, -1), 1)
        code = tf.one_hot(nearest, 6, dtype=rows.dtype)
        found = code @ vectors
        if training:
            moved = tf.matmul(code, rows, transpose_a=True) / (tf.reduce_sum(code, 0)[:, None] + 1e-3)
            self.vectors.assign(0.9 * vectors + 0.1 * moved)
        self.add_loss(tf.reduce_mean((tf.stop_gradient(found) - rows) ** 2))
        return rows + tf.stop_gradient(found - rows)


@kind(divided="partly")
def codebook_that_the_batch_moves():
    yield from fitted(compiled(keras.Sequential([L.Dense(4), Codebook(), L.Dense(8)])), X, X, batch_size=11, epochs=2)


class FirstBatch(L.Layer):
    """Its weights come from its first batch."""

    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")
        self.fresh = True

    def call(self, rows):
        if self.fresh:
            self.fresh = False
            self.scale.assign(1 / (tf.math.reduce_std(rows, 0) + 1e-6))
        return rows * self.scale


@kind(divided="partly")
def weights_that_come_from_the_first_batch():
    yield from trained(keras.Sequential([L.Dense(6, "tanh"), FirstBatch(), L.Dense(1)]), X, Y, steps=4)


class Experts(L.Layer):
    """Each row goes to one of two layers, which take no more than some of the batch."""

    def __init__(self, capacity):
        super().__init__()
        self.capacity, self.gate, self.experts = capacity, L.Dense(2), [L.Dense(6, "tanh") for _ in range(2)]

    def call(self, rows):
        share = tf.nn.softmax(self.gate(rows))
        chosen = tf.one_hot(tf.argmax(share, 1), 2, dtype=rows.dtype)
        taken = chosen * tf.cast(tf.cumsum(chosen, 0) <= self.capacity, rows.dtype) * share
        return sum(expert(rows) * taken[:, i : i + 1] for i, expert in enumerate(self.experts))


@kind(divided="partly")
def experts_that_are_full_in_later_batches_alone():
    for graph in (False, True):
        model, optimizer = keras.Sequential([L.Dense(8), Experts(9), L.Dense(1)]), keras.optimizers.Adam(0.01)
        model.build((None, 8))
        optimizer.build(model.trainable_variables)

        def step(rows, wanted, model=model, optimizer=optimizer):
            return descend(optimizer, [model], lambda: square(model(rows), wanted))

        any_number = [tf.TensorSpec([None, 8], tf.float64), tf.TensorSpec([None, 1], tf.float64)]
        step = tf.function(step, input_signature=any_number) if graph else step
        for count in (6, 6, 9, 20, 31):
            yield [model, optimizer], step(*some(count, X, Y))


class Nodes(keras.Model):
    """Rows are nodes of graphs: each result is of several."""

    def __init__(self):
        super().__init__()
        self.dense, self.last = L.Dense(6, "tanh"), L.Dense(1)

    def call(self, given):
        rows, graphs = given
        return self.last(tf.math.segment_mean(self.dense(rows), graphs))


@kind(divided=False)
def nodes_of_several_graphs():
    model, optimizer = Nodes(), keras.optimizers.Adam(0.01)
    graphs = tf.constant([0, 0, 1, 1, 1, 2, 3, 3, 3, 3])
    for _ in range(3):
        rows, wanted = some(10, X, Y)
        loss = descend(optimizer, [model], lambda rows=rows, wanted=wanted: square(model((rows, graphs)), wanted[:4]))
        yield [model, optimizer], loss


class Frames(keras.Model):
    """(rows, frames, 5) in, (frames, rows, 3) out."""

    def __init__(self):
        super().__init__()
        self.dense = L.Dense(3, "tanh")

    def call(self, given):
        return tf.transpose(self.dense(given), [1, 0, 2])


@kind(divided="partly")
def results_whose_first_axis_is_time():
    """Also where there are as many rows as frames."""

    def loss(found, wanted):
        return tf.reduce_mean((tf.reduce_mean(found, [0, 2])[:, None] - wanted) ** 2)

    for count in (7, 6):
        yield from trained(Frames(), FRAMES, TARGETS, count=count, loss=loss)


class Several(keras.Model):
    """Complex numbers, whole ones, and weights, of which there are as many as rows."""

    def __init__(self):
        super().__init__()
        self.dense, self.last = L.Dense(9), L.Dense(1)

    def call(self, rows):
        found = self.dense(rows)
        waves = tf.signal.fft(tf.cast(found, tf.complex128))
        return {"waves": waves, "best": tf.argmax(found, 1), "end": self.last(found), "kernel": self.last.kernel + 0.0}


@kind(divided="partly")
def results_of_many_kinds():
    model, optimizer = Several(), keras.optimizers.Adam(0.01)
    for _ in range(3):
        rows, wanted = some(9, X, Y)

        def loss(rows=rows, wanted=wanted):
            said = model(rows)
            weight = 1.0 + tf.cast(said["best"], tf.float64)[:, None]
            return (
                tf.reduce_mean(tf.abs(said["waves"]) * weight)
                + square(said["end"], wanted)
                + tf.reduce_sum(tf.abs(said["kernel"]))
            )

        yield [model, optimizer], descend(optimizer, [model], loss)


@kind
def gradients_that_begin_with_numbers_of_the_script():
    model, optimizer = mlp(6, 1), keras.optimizers.Adam(0.01)
    for _ in range(3):
        rows, wanted = some(9, X, Y)
        with tf.GradientTape() as tape:
            found = model(rows)
        weights = model.trainable_variables
        gradients = tape.gradient(found, weights, output_gradients=2 * (found - wanted) / 9)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        yield [model, optimizer], square(found, wanted)


@kind
def model_whose_last_layers_are_replaced():
    model = keras.Sequential([keras.Input((8,)), L.Dense(6, "tanh"), L.Dense(1)])
    yield from fitted(compiled(model), X, Y, batch_size=11, epochs=1)
    model.pop()
    for layer in (L.Dense(4, "tanh"), L.Dropout(0.2), L.Dense(1)):
        model.add(layer)
    yield from fitted(compiled(model), X, Y, batch_size=11, epochs=1)


@kind
def centres_of_classes_that_the_batch_moves():
    model, optimizer = mlp(6, 3), keras.optimizers.Adam(0.01)
    centres = tf.Variable(np.random.RandomState(1).rand(4, 3), trainable=False)
    for _ in range(4):
        rows, labels = some(9, X, np.arange(48) % 4)
        with tf.GradientTape() as tape:
            apart = tf.gather(centres, labels) - model(rows)
            loss = tf.reduce_mean(apart**2)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        centres.assign(tf.tensor_scatter_nd_sub(centres, labels[:, None], 0.5 * apart))
        yield [model, optimizer, centres], loss
