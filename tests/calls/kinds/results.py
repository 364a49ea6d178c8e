"""Gradients by what a call gives, where other results of the call follow from it."""

import tensorflow as tf

from . import L, descend, examples, keras, kind, some, square


def with_results_between():
    """A model that gives what it is given, what it makes of it, twice, and what follows from that."""
    given = keras.Input((8,), dtype="float64")
    hidden = L.Dense(6, "tanh")(given)
    found = L.Dense(1)(L.Dropout(0.2)(L.Dense(4, "tanh")(hidden)))
    return keras.Model(given, [given, hidden, hidden, found])


class Between(keras.Model):
    """The same by code of the script's own."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = L.Dense(6), L.Dense(4), L.Dense(1)

    def call(self, given):
        hidden = tf.tanh(self.first(given))
        return [given, hidden, hidden, self.last(tf.tanh(self.second(hidden)))]


class BetweenAlone(tf.Module):
    """And by operations alone, which are divided eagerly, too."""

    def __init__(self):
        super().__init__()
        numbers = tf.random.Generator.from_seed(3)
        self.first = tf.Variable(numbers.normal((8, 6), dtype=tf.float64) / 3)
        self.last = tf.Variable(numbers.normal((6, 1), dtype=tf.float64) / 3)

    def __call__(self, given, training=True):
        del training
        hidden = tf.tanh(given @ self.first)
        return [given, hidden, hidden, tf.tanh(hidden) @ self.last]


def attended_by(net, rows, wanted, unconnected):
    """A loss with what the result of a call changes by another result of it, and by what it is given."""
    with tf.GradientTape(persistent=True) as inner:
        inner.watch(rows)
        passed, hidden, again, found = net(rows, training=True)
        score = tf.reduce_sum(found**2) + tf.reduce_sum(hidden**2) / 10 + tf.reduce_mean(passed * rows)
        apart = tf.reduce_sum(rows)
    by_hidden, by_again, by_passed = inner.gradient(score, [hidden, again, passed])
    none = inner.gradient(apart, hidden, unconnected_gradients=unconnected)
    loss = square(found, wanted) + sum(
        tf.reduce_max(tf.nn.softmax(tf.reduce_mean(each, 0))) for each in (by_hidden, by_again, by_passed)
    )
    return loss if none is None else loss + tf.reduce_sum(none + 1)


@kind(sample=True)
def gradient_by_a_result_that_another_follows_from():
    """As in Grad-CAM: what is between belongs to the call that goes on from it."""
    yield from attentive(with_results_between())


@kind(divided="partly", sample=True)
def gradient_by_a_result_of_code_that_another_follows_from():
    net = Between()
    net(examples()[0])
    yield from attentive(net)


@kind(sample=True)
def gradient_by_a_result_of_operations_that_another_follows_from():
    yield from attentive(BetweenAlone(), graph=True)


@kind(may_refuse=("inside of which no tape records",))
def gradient_by_a_result_of_operations_that_run_eagerly():
    yield from attentive(BetweenAlone(), graph=False)


def attentive(net, graph=None):
    """graph: whether in a tf.function; None for both, one after the other."""
    x, y = examples()
    optimizer = keras.optimizers.SGD(0.1)

    def step(rows, wanted, unconnected=tf.UnconnectedGradients.NONE):
        return descend(optimizer, [net], lambda: attended_by(net, rows, wanted, unconnected))

    compiled = tf.function(step, reduce_retracing=True)
    for number, count in enumerate((9, 8, 9, 7)):
        taken = compiled if (number > 1 if graph is None else graph) else step
        unconnected = tf.UnconnectedGradients.ZERO if number % 2 else tf.UnconnectedGradients.NONE
        yield [net, optimizer], taken(*some(count, x, y), unconnected)


class Codes(L.Layer):
    """It gives what rows are made with besides the rows, and twice."""

    def build(self, shape):
        self.table = self.add_weight(shape=(int(shape[-1]), 4), initializer="glorot_uniform", name="table")

    def call(self, x):
        codes = tf.tanh(tf.convert_to_tensor(self.table))
        return {"codes": codes, "again": codes, "rows": x @ codes}


@kind(sample=True)
def gradient_by_a_result_without_rows_that_rows_follow_from():
    x, y = examples()
    layer, last, optimizer = Codes(), L.Dense(1), keras.optimizers.SGD(0.1)
    layer.build((None, 8))
    last.build((None, 4))

    @tf.function(reduce_retracing=True)
    def step(rows, wanted):
        def loss():
            with tf.GradientTape() as inner:
                found = layer(rows)
                score = tf.reduce_mean(found["rows"] ** 2) + tf.reduce_mean(found["again"] ** 2)
            by_codes = inner.gradient(score, found["codes"])
            return square(last(found["rows"]), wanted) + tf.reduce_sum(tf.nn.softmax(by_codes, 0) ** 2)

        return descend(optimizer, [layer, last], loss)

    for count in (9, 8, 9):
        yield [layer, last, optimizer], step(*some(count, x, y))
