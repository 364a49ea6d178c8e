"""Where batches come from: every worker has the whole of each."""

import queue

import numpy as np
import tensorflow as tf

from . import KERAS, L, compiled, descend, examples, fitted, keras, kind, mlp, some, square
from .elsewhere import Loader, Trainer, made_step


def net_and_optimizer():
    return mlp(16, 1), keras.optimizers.SGD(0.1)


def over(batches, graph=False):
    """Trains on each batch of an iterable."""
    net, optimizer = net_and_optimizer()

    def step(rows, wanted):
        return descend(optimizer, [net], lambda: square(net(rows), wanted))

    step = tf.function(step, reduce_retracing=True) if graph else step
    for rows, wanted in batches:
        yield [net, optimizer], step(tf.cast(rows, tf.float64), tf.cast(wanted, tf.float64))


def dataset():
    return tf.data.Dataset.from_tensor_slices(examples(32))


@kind
def shuffled_dataset_without_a_seed():
    yield from over(dataset().shuffle(32).batch(9), graph=True)


@kind
def repeated_shuffles_and_interleaves():
    files = tf.data.Dataset.range(4).shuffle(4)
    rows = files.interleave(lambda f: dataset().skip(tf.cast(f, tf.int64) * 8).take(8), cycle_length=2)
    yield from over(rows.shuffle(16).batch(9, drop_remainder=True).repeat(2))


@kind
def draws_of_tensorflow_behind_map():
    def changed(rows, wanted):
        return rows + 0.1 * tf.random.normal(tf.shape(rows), dtype=rows.dtype), wanted

    yield from over(dataset().map(changed).batch(9))


@kind
def numpy_noise_behind_map():
    """A function of Python's in the dataset, that draws from NumPy's one generator."""

    def noise(rows):
        return rows + np.random.randn(*rows.shape) * 0.1

    def changed(rows, wanted):
        return tf.ensure_shape(tf.numpy_function(noise, [rows], tf.float64), rows.shape), wanted

    yield from over(dataset().map(changed).batch(9))


@kind
def counter_behind_map():
    """How often Python was asked decides what is given."""
    asked = []

    def counted(row):
        asked.append(len(asked))
        return row * (1 + 0.1 * (len(asked) % 5))

    def changed(rows, wanted):
        return tf.ensure_shape(tf.py_function(counted, [rows], tf.float64), rows.shape), wanted

    yield from over(dataset().map(changed).batch(9))


@kind
def generator_that_remembers():
    """A Python generator behind a dataset, whose rows depend on those before."""

    def rows():
        state = np.zeros(8)
        for _ in range(27):
            state = 0.7 * state + np.random.rand(8)
            yield state, state[:1]

    signature = (tf.TensorSpec([8], tf.float64), tf.TensorSpec([1], tf.float64))
    yield from over(tf.data.Dataset.from_generator(rows, output_signature=signature).batch(9))


@kind
def full_batch():
    x, y = examples(61)
    yield from over([(x, y)] * 4)


@kind(sample=True)
def loader_and_step_of_another_file():
    net, optimizer = net_and_optimizer()
    loader, step = Loader(), made_step(net, optimizer)
    for _ in range(3):
        yield [net, optimizer], step(*loader.next_batch(9))


@kind
def trainer_of_another_file():
    net, optimizer = net_and_optimizer()
    for loss in Trainer(net, optimizer, graph=True).run(Loader(), 3):
        yield [net, optimizer], loss


@kind
def queue_of_tensorflow():
    x, y = examples()
    waiting = tf.queue.RandomShuffleQueue(64, 8, [tf.float64, tf.float64], [[8], [1]], seed=3)
    waiting.enqueue_many([x, y])
    yield from over(waiting.dequeue_many(9) for _ in range(3))


@kind
def queue_of_python():
    """A producer that is asked between steps."""
    x, y = examples()
    waiting = queue.Queue()

    def batches():
        for number in range(4):
            for _ in range(number + 1):
                waiting.put(some(9, x, y))
            yield waiting.get()

    yield from over(batches())


@kind(sample=True)
def memory_scattered_by_the_batch():
    """A memory bank: each batch writes what it computed to the places of its rows, and later losses read them."""
    x, _ = examples()
    net, optimizer = mlp(8, 4), keras.optimizers.SGD(0.1)
    bank, seen = tf.Variable(np.random.RandomState(1).rand(64, 4)), tf.Variable(np.zeros(64, "int64"))
    for _ in range(4):
        chosen = np.random.permutation(64)[:10]
        rows, places = tf.constant(x[chosen]), tf.constant(chosen[:, None])
        with tf.GradientTape() as tape:
            out = tf.math.l2_normalize(net(rows), 1)
            near = tf.reduce_sum(out * tf.gather_nd(bank, places), 1)
            loss = tf.reduce_mean(tf.reduce_logsumexp(out @ tf.transpose(bank), 1) - near)
        found = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(found, net.trainable_variables, strict=True))
        bank.scatter_nd_update(places, out)
        seen.scatter_nd_add(places, tf.ones(10, tf.int64))
        yield [net, optimizer, bank, seen], loss


@kind
def memory_scattered_in_a_graph():
    """Centres of classes that follow the batch, with classes that come twice in it."""
    x, y = examples()
    labels = (y[:, 0] * 4).astype(int)
    net, optimizer, centres = mlp(8, 4), keras.optimizers.Adam(0.01), tf.Variable(np.zeros((4, 4)))

    @tf.function
    def step(rows, label):
        with tf.GradientTape() as tape:
            out = net(rows)
            loss = tf.reduce_mean((out - tf.gather(centres, label)) ** 2) + square(out, 1.0)
        found = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(found, net.trainable_variables, strict=True))
        counts = tf.math.bincount(label, minlength=4, maxlength=4, dtype=tf.float64)
        far = (tf.gather(centres, label) - out) / (1 + tf.gather(counts, label))[:, None]
        centres.assign(tf.tensor_scatter_nd_sub(centres, label[:, None], 0.5 * far))
        return loss

    for _ in range(3):
        yield [net, optimizer, centres], step(*some(10, x, labels))


class Batches(getattr(keras.utils, "PyDataset", keras.utils.Sequence)):
    """A sequence of batches, in another order after each epoch."""

    def __init__(self):
        if KERAS == 3:
            super().__init__()
        self.x, self.y = examples(30)
        self.on_epoch_end()

    def __len__(self):
        return 4

    def __getitem__(self, number):
        chosen = self.order[number * 8 : number * 8 + 8]
        return self.x[chosen], self.y[chosen]

    def on_epoch_end(self):
        self.order = np.random.permutation(30)


@kind
def sequence_of_batches():
    yield from fitted(compiled(mlp(8, 1)), Batches(), epochs=2, shuffle=True)


@kind
def mixed_rows_and_cut_out_squares():
    """Augmentation in the script, drawn for the whole batch."""
    numbers = np.random.RandomState(0)
    images, labels = numbers.rand(24, 6, 6, 1), np.eye(3)[numbers.randint(0, 3, 24)]
    net = keras.Sequential([L.Conv2D(4, 3, activation="relu"), L.Flatten(), L.Dense(3)])
    optimizer = keras.optimizers.Adam(0.01)
    for _ in range(3):
        rows, wanted = some(9, images, labels)
        share, order = np.random.beta(0.4, 0.4), tf.random.shuffle(tf.range(9))
        rows = share * rows + (1 - share) * tf.gather(rows, order)
        wanted = share * wanted + (1 - share) * tf.gather(wanted, order)
        place = tf.random.uniform([9, 1, 1, 1], maxval=6, dtype=tf.int32)
        rows *= tf.cast(tf.abs(tf.range(6)[None, :, None, None] - place) > 1, tf.float64)

        def loss(rows=rows, wanted=wanted):
            return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(wanted, net(rows)))

        yield [net, optimizer], descend(optimizer, [net], loss)


@kind(sample=True)
def fit_on_data_of_unknown_length():
    """At its end Keras 3 counts one more step, of the optimizer and of the layers that draw."""
    x, y = examples()
    rows = tf.data.Dataset.from_tensor_slices((x, y)).filter(lambda x, _: x[0] > -9.0).batch(9)
    net = keras.Sequential([L.Dense(8), L.Dropout(0.3), L.Dense(1)])
    yield from fitted(compiled(net, "mse"), rows, epochs=3)


@kind(sample=True)
def adversarial_examples_made_in_the_pipeline():
    """Stages run ahead of the script, in threads: what they take of a model every worker computes. It is another one
    than is trained: how far ahead they run is not known."""
    x, y = examples()
    net, teacher, optimizer = mlp(8, 6, 1), mlp(5, 1), keras.optimizers.SGD(0.1)
    net.build((None, 8))
    teacher.build((None, 8))

    def moved(rows, wanted):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(rows)
            loss = square(teacher(rows), wanted)
        return rows + 0.05 * tf.sign(tape.gradient(loss, rows)), wanted

    batches = tf.data.Dataset.from_tensor_slices((tf.constant(x), tf.constant(y))).batch(9).map(moved)
    step = tf.function(lambda rows, wanted: descend(optimizer, [net], lambda: square(net(rows), wanted)))
    for rows, wanted in batches:
        yield [net, optimizer], step(rows, wanted)
