"""How layers are put together and called."""

import dataclasses
import os
import typing

import numpy as np
import tensorflow as tf

from . import L, compiled, descend, examples, fitted, keras, kind, mlp, some, square, trained

numbers = np.random.RandomState(0)
SEQUENCES, TARGETS = numbers.rand(24, 5, 3), numbers.rand(24, 1)


@kind
def one_layer():
    yield from trained(L.Dense(1), *examples(), count=9)


@kind
def raw_call_of_a_model():
    """`model.call(x)` goes past what Keras does around a call."""
    net = mlp(16, 1)
    net.build((None, 8))
    yield from trained(net, *examples(), call=net.call, count=9)


class Nested(keras.Model):
    def __init__(self):
        super().__init__()
        self.trunk, self.branch, self.out = mlp(8, 8), keras.Sequential([mlp(4, 4), L.Dense(8)]), L.Dense(1)

    def call(self, x):
        return self.out(self.trunk(x) + self.branch(x))


@kind
def models_in_models():
    yield from trained(Nested(), *examples(), graph=True, count=9)


@kind
def functional_model_with_branches():
    rows = keras.Input((8,))
    left, right = L.Dense(6, activation="relu")(rows), L.Dense(6, activation="tanh")(rows)
    joined = L.Concatenate()([L.Add()([left, right]), L.Multiply()([left, right]), rows])
    yield from fitted(compiled(keras.Model(rows, L.Dense(1)(joined))), *examples(), batch_size=10, epochs=1)


class Dictionaries(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = L.Dense(4), L.Dense(1)

    def call(self, inputs):
        hidden = self.first(inputs["x"]) * inputs["weights"]
        return {"hidden": hidden, "outs": (self.second(hidden), [tf.reduce_sum(hidden, 1)])}


@kind(sample=True)
def dictionaries_and_tuples():
    x, y = examples()
    net, optimizer = Dictionaries(), keras.optimizers.Adam(0.01)
    for _ in range(3):
        rows, wanted = some(9, x, y)

        def loss(rows=rows, wanted=wanted):
            out = net({"x": rows, "weights": wanted})
            first, (second,) = out["outs"]
            return square(first, wanted) + tf.reduce_mean(second**2) + tf.reduce_mean(tf.abs(out["hidden"]))

        yield [net, optimizer], descend(optimizer, [net], loss)


class Optional(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = L.Dense(4), L.Dense(1)

    def call(self, x, context=None, scale=2.0):
        hidden = self.first(x) * scale
        return self.second(hidden if context is None else hidden + context), None


@kind
def inputs_and_outputs_that_are_none():
    x, y = examples()
    net, optimizer = Optional(), keras.optimizers.Adam(0.01)
    for number in range(4):
        rows, wanted = some(9, x, y)

        def loss(rows=rows, wanted=wanted, number=number):
            return square(net(rows, wanted if number % 2 else None, scale=1.0)[0], wanted)

        yield [net, optimizer], descend(optimizer, [net], loss)


@kind(divided="partly", sample=True)
def input_with_no_batch_of_the_same_length():
    """A table that all rows use, with as many rows as the batch: which is the batch, only values can tell."""

    class Table(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.out = L.Dense(8), L.Dense(1)

        def call(self, x, table):
            return self.out(self.first(x) @ tf.transpose(table) @ table)

    net, table = Table(), tf.constant(np.random.RandomState(3).rand(10, 8))
    yield from trained(net, *examples(), call=lambda x: net(x, table))


@kind
def table_that_is_learnt_by_another_model():
    """A divided call uses a table as a whole, and its gradient goes on into what has made it."""
    x, y = examples()

    class Table(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.out = L.Dense(8), L.Dense(1)

        def call(self, x, table):
            return self.out(tf.nn.softmax(self.first(x) @ tf.transpose(table)) @ table)

    for graph in (False, True):
        maker, net, optimizer = mlp(8, 8), Table(), keras.optimizers.SGD(0.1)
        maker.build((None, 8))
        net(x[:2], x[:4])

        def step(rows, wanted, other, parts=(maker, net, optimizer)):
            maker, net, optimizer = parts
            return descend(optimizer, [maker, net], lambda: square(net(rows, maker(other)[:4]), wanted))

        step = tf.function(step) if graph else step
        for _ in range(3):
            yield [maker, net, optimizer], step(*some(10, x, y, x[::-1]))


@kind
def table_of_another_length():
    class Table(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.out = L.Dense(8), L.Dense(1)

        def call(self, x, table):
            return self.out(tf.nn.softmax(self.first(x) @ tf.transpose(table)) @ table)

    net, table = Table(), tf.constant(np.random.RandomState(3).rand(4, 8))
    yield from trained(net, *examples(), call=lambda x: net(x, table))


class AcrossRows(L.Layer):
    """Attention of each row to all rows of the batch."""

    def __init__(self):
        super().__init__()
        self.dense = L.Dense(8, activation="tanh")

    def call(self, x):
        hidden = self.dense(x)
        return tf.nn.softmax(hidden @ tf.transpose(hidden)) @ hidden - tf.reduce_mean(hidden, 0)


@kind(divided="partly", sample=True)
def attention_over_the_batch():
    model = keras.Sequential([L.Dense(8), AcrossRows(), L.Dense(1)])
    yield from fitted(compiled(model), *examples(), batch_size=10, epochs=1)


@kind(divided="partly")
def attention_over_the_batch_in_a_subclass():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.across, self.out = L.Dense(8), AcrossRows(), L.Dense(1)

        def call(self, x):
            return self.out(self.across(self.first(x)))

    yield from trained(Model(), *examples(), count=9)


class Padded(L.Layer):
    """The last words of no sequence count: one row of a mask for all of them."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, x):
        return 2.0 * x

    def compute_mask(self, x, mask=None):
        del x, mask
        return tf.constant([[True, True, True, False, False]])


@kind(divided="partly")
def layers_called_one_by_one_with_one_mask_for_all_rows():
    layers = [Padded(), L.GlobalAveragePooling1D(), L.Dense(1)]

    def call(x):
        for each in layers:
            x = each(x)
        return x

    call(tf.constant(SEQUENCES[:2]))
    yield from trained(layers[2], SEQUENCES, TARGETS, call=call, count=9)


IS_ODD = os.environ.get("TFDP_RANK") == "1"


class Odd(L.Layer):
    """On one of the workers a look finds an operation that others have not."""

    def call(self, x):
        return 2 * x - 0 * tf.reduce_mean(x, 0) if IS_ODD else 2 * x


@kind(divided=False)
def layer_that_one_worker_takes_for_another():
    net = keras.Sequential([L.Dense(8), Odd(), L.Dense(1)])
    net.build((None, 8))
    yield from trained(net, *examples(), count=10)


class Shifted(L.Layer):
    """Each row meets its neighbour."""

    def call(self, x):
        return x - 0.5 * tf.roll(x, 1, 0)


@kind(divided="partly")
def rows_that_meet_their_neighbours():
    yield from trained(keras.Sequential([L.Dense(8), Shifted(), L.Dense(1)]), *examples(), graph=True, count=9)


@kind(divided="partly")
def lambda_layers():
    centred = L.Lambda(lambda x: x - tf.reduce_mean(x, 0))
    net = keras.Sequential([L.Lambda(lambda x: x**2), L.Dense(8), centred, L.Dense(1)])
    yield from trained(net, *examples(), count=9)


@kind(divided="partly")
def rows_moved_into_time_and_back():
    """Axis 0 of what an inner layer sees is that of time."""

    class TimeMajor(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner, self.out = L.Dense(4), L.Dense(1)

        def call(self, x):
            inner = self.inner(tf.transpose(x, [1, 0, 2]))
            return self.out(tf.reduce_max(tf.transpose(inner, [1, 0, 2]), 1))

    yield from trained(TimeMajor(), SEQUENCES, TARGETS, count=7)


@kind(divided="partly")
def outputs_that_are_no_rows():
    """A model that gives a number for the batch."""

    class Number(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = mlp(8, 1)

        def call(self, x):
            return tf.reduce_mean(self.inner(x) ** 2)

    net = Number()
    yield from trained(net, *examples(), loss=lambda p, y: (p - tf.reduce_mean(y)) ** 2, count=9)


@kind
def layer_called_twice_in_a_step():
    net = mlp(8, 4)

    def loss(p, y):
        return square(p, y) + tf.reduce_mean((net(tf.concat([p, p], 1)) - p) ** 2)

    yield from trained(net, *examples(64, 8, 4), loss=loss, count=9)


@kind(sample=True)
def halves_put_together():
    """A discriminator sees real and generated rows as one batch."""
    x, _ = examples()
    generator, critic, optimizer = mlp(16, 8), mlp(16, 1), keras.optimizers.Adam(0.01)
    labels = tf.concat([tf.ones((5, 1), tf.float64), tf.zeros((5, 1), tf.float64)], 0)
    for _ in range(3):
        real = some(10, x)

        def loss(real=real):
            fake = generator(real)
            judged = critic(tf.concat([real[:5], fake[:5]], 0))
            return square(judged, labels) + tf.reduce_mean(tf.abs(generator(fake) - real))

        yield [generator, critic, optimizer], descend(optimizer, [generator, critic], loss)


@kind
def batches_of_few_rows():
    """Fewer rows than workers, and one alone."""
    x, y = examples()
    net, optimizer = mlp(8, 1), keras.optimizers.Adam(0.01)
    for count in (3, 2, 1, 4, 1):
        rows, wanted = some(count, x, y)

        def loss(rows=rows, wanted=wanted):
            return square(net(rows), wanted)

        yield [net, optimizer], descend(optimizer, [net], loss)


@kind
def batches_of_which_the_second_has_no_rows():
    """The first call makes the variables, so that no rows have been divided by then."""
    net, optimizer = mlp(8, 1), keras.optimizers.Adam(0.01)
    for count in (5, 0, 7, 0):
        rows, wanted = some(count, *examples())

        def loss(rows=rows, wanted=wanted):
            return tf.reduce_sum((net(rows) - wanted) ** 2)

        yield [net, optimizer], descend(optimizer, [net], loss)


@kind
def batches_of_many_lengths():
    """A graph for each length, or one for all."""
    x, y = examples()
    net, optimizer = (
        keras.Sequential([L.Dense(8, activation="relu"), L.Dropout(0.2), L.Dense(1)]),
        keras.optimizers.SGD(0.1),
    )

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float64), tf.TensorSpec([None, 1], tf.float64)])
    def step(rows, wanted):
        return descend(optimizer, [net], lambda: square(net(rows, training=True), wanted))

    for count in (10, 7, 2, 1, 12):
        yield [net, optimizer], step(*some(count, x, y))


@kind
def layers_wrapped_in_layers():
    layers = [L.TimeDistributed(L.Dense(4, activation="relu")), L.Bidirectional(L.GRU(3)), L.Dense(1)]
    yield from trained(keras.Sequential(layers), SEQUENCES, TARGETS, count=7)


@dataclasses.dataclass
class Scores:
    values: typing.Any
    scale: typing.Any


class Fields(typing.NamedTuple):
    values: typing.Any
    scale: typing.Any


class Scoring(tf.Module):
    def __init__(self, kind_of_result):
        super().__init__()
        self.made = kind_of_result
        self.w = tf.Variable(np.linspace(-1, 1, 8)[:, None])

    def __call__(self, x):
        values = tf.tanh(x @ self.w)
        return self.made(values, values * 2)


def scored(kind_of_result):
    x, y = examples()
    body, module, optimizer = mlp(8, 8), Scoring(kind_of_result), keras.optimizers.SGD(0.1)
    body.build((None, 8)), optimizer.build([*body.weights, module.w])
    for _ in range(2):
        rows, wanted = some(9, x, y)

        def loss(rows=rows, wanted=wanted):
            found = module(body(rows))
            return square(found.values, wanted) + tf.reduce_mean(found.scale**2)

        yield [body, module.w, optimizer], descend(optimizer, [body, module.w], loss)


@kind(divided="partly")
def results_in_an_object_of_a_class():
    yield from scored(Scores)


@kind
def results_in_a_named_tuple():
    yield from scored(Fields)


class Stepping(keras.Model):
    """Is built by its first call, in the step of `fit`; what it calls is built, and mixes rows between layers."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def call(self, x, training=None):
        return self.net(x, training=training)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = square(self(x, training=True), y)
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


@kind(divided="partly")
def model_that_its_first_step_builds():
    inputs = keras.Input((8,))
    hidden = L.Dense(6, activation="tanh")(inputs)
    mixed = L.Lambda(lambda h: h - tf.reduce_mean(h, 0, keepdims=True))(hidden)
    net = keras.Model(inputs, L.Dense(1)(mixed))
    yield from fitted(compiled(Stepping(net)), *examples(48), batch_size=16, epochs=2)
