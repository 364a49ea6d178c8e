"""Raw variables and functions of them, which are no layers: wrapped in `by_rows`, or computed by all workers."""

import operator

import numpy as np
import tensorflow as tf

from . import KERAS, L, by_rows, descend_by_hand, examples, kind, mlp, some, square

X, Y = examples()


def trained_by_hand(net, weights, graph=False, loss=square):
    """Weights that are no model's, by an update that is no optimizer's."""

    def step(rows, wanted):
        return descend_by_hand(0.1, weights, lambda: loss(net(rows), wanted))

    step = tf.function(step) if graph else step
    for _ in range(3):
        yield list(weights), step(*some(9, X, Y))


def variables():
    numbers = np.random.RandomState(0)
    return tf.Variable(numbers.randn(8, 6)), tf.Variable(numbers.randn(6, 1))


@kind(sample=True)
def function_of_raw_variables():
    first, second = weights = variables()
    yield from trained_by_hand(by_rows(lambda rows: tf.tanh(rows @ first) @ second), weights)


@kind(sample=True)
def function_given_its_variables_which_are_as_long_as_the_batch():
    weights = variables()
    net = by_rows(lambda rows, held: tf.tanh(rows @ held[0]) @ held[1])
    for _ in range(3):
        rows, wanted = some(8, X, Y)
        yield list(weights), descend_by_hand(0.1, weights, lambda r=rows, w=wanted: square(net(r, weights), w))


@kind
def function_of_raw_variables_in_a_graph():
    first, second = weights = variables()

    def loss(out, wanted):
        return tf.sqrt(square(out, wanted)) + 0.1 * tf.reduce_sum(first**2)

    net = by_rows(lambda rows: tf.nn.dropout(tf.tanh(rows @ first), 0.3) @ second)
    yield from trained_by_hand(net, weights, graph=True, loss=loss)


@kind
def function_that_draws_one_mask_for_all_rows():
    first, second = weights = variables()
    net = by_rows(lambda rows: tf.nn.dropout(tf.tanh(rows @ first), 0.3, noise_shape=[1, 6]) @ second)
    yield from trained_by_hand(net, weights)


@kind(divided=False)
def function_of_rows_that_meet():
    first, second = weights = variables()

    def net(rows):
        hidden = tf.tanh(rows @ first)
        return (hidden - tf.reduce_mean(hidden, 0)) @ second

    yield from trained_by_hand(by_rows(net), weights)


@kind(divided=False)
def raw_variables():
    weight, bias = weights = tf.Variable(np.zeros((8, 1))), tf.Variable(np.zeros(1))
    yield from trained_by_hand(lambda rows: rows @ weight + bias, weights)


@kind
def raw_variables_beside_a_model():
    """A prior that is nobody's, in a loss with a model's outputs."""
    net, scale = mlp(8, 1), tf.Variable(np.ones(1))
    net.build((None, 8))
    raw = [v.value if KERAS == 3 else v for v in net.trainable_variables]
    yield from trained_by_hand(lambda rows: net(rows) * scale + 0.1 * scale**2, [*raw, scale], graph=True)


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = variables()

    def __call__(self, rows, *, scale=1.0):
        return {"out": tf.nn.relu(rows["x"] @ self.first) @ self.second * scale, "rows": rows["x"]}


@kind
def module_of_tensorflow_with_dictionaries():
    module = Module()
    called = by_rows(lambda rows: module(rows, scale=0.5))

    def loss(out, wanted):
        return square(out["out"], wanted) + 0.01 * tf.reduce_mean(tf.math.reduce_std(out["out"], 0)) * out["rows"][0, 0]

    yield from trained_by_hand(lambda rows: called({"x": rows}), module.trainable_variables, loss=loss)


@kind(sample=True)
def modules_of_tensorflow_by_themselves():
    """Calls of a class that there was before the start, and of one that is made afterwards."""

    class Twice(tf.Module):
        def __init__(self):
            super().__init__()
            self.parts = [Module(), Module()]

        def __call__(self, rows):
            return tf.add_n([part({"x": rows}, scale=0.5)["out"] for part in self.parts])

    first, twice = Module(), Twice()
    weights = [*first.trainable_variables, *twice.trainable_variables]
    yield from trained_by_hand(lambda rows: first({"x": rows})["out"] + twice(rows), weights, graph=True)
    yield from trained_by_hand(lambda rows: first({"x": rows})["out"] - twice(rows), weights)


class Linear(tf.Module):
    """Whose call is compiled, and makes the variables when it is called first."""

    def __init__(self):
        super().__init__()
        self.is_built = False

    @tf.function
    def __call__(self, rows):
        if not self.is_built:
            self.weights = tf.Variable(tf.random.normal((8, 1), dtype=rows.dtype))
            self.bias = tf.Variable(tf.cast(0.1, rows.dtype))
            self.is_built = True
        return rows @ self.weights + self.bias


def parts_that_draw(*, graph):
    """A draw of a `tf.function` has the seed of its place in there, and its own state."""
    first, second = weights = variables()

    @tf.function
    def noisy(rows):
        return tf.tanh(rows @ first) + tf.random.normal((tf.shape(rows)[0], 6), dtype=rows.dtype)

    net, beside = by_rows(lambda rows: noisy(rows) @ second), mlp(8, 1)
    net(tf.constant(X[:2]))
    beside(tf.constant(X[:2]))

    def found(rows):
        return net(rows + tf.random.normal(rows.shape, 0, 0.1, rows.dtype)) + beside(rows)

    yield from trained_by_hand(found, weights, graph)


@kind(divided="partly", sample=True)
def compiled_part_that_draws():
    yield from parts_that_draw(graph=False)


@kind(divided="partly")
def compiled_part_that_draws_in_a_function():
    yield from parts_that_draw(graph=True)


def compiled_modules(*, graph):
    rows, _ = examples()
    module = Linear()
    module(tf.constant(rows[:1]))
    yield from trained_by_hand(module, module.trainable_variables, graph=graph)


@kind
def compiled_call_of_a_module_in_a_function():
    yield from compiled_modules(graph=True)


@kind
def compiled_call_of_a_module():
    yield from compiled_modules(graph=False)


@kind
def function_of_several_batches():
    """Two batches of one length, and a table that is none."""
    first, second = weights = variables()
    table = tf.constant(np.random.RandomState(1).rand(3, 6))

    @by_rows
    def alike(left, right, table):
        return tf.reduce_sum((left @ first) * (right @ first) @ tf.transpose(table), 1, keepdims=True)

    yield from trained_by_hand(lambda rows: alike(rows, rows**2, table) + rows[:, :6] @ second, weights)


@kind(sample=True)
def products_of_which_the_functions_are_tensorflows():
    """Variables are arguments: of two of one shape each has a gradient of its own."""
    numbers = np.random.RandomState(0)
    weights = [tf.Variable(numbers.randn(8, 8)), tf.Variable(numbers.randn(8, 8)), tf.Variable(numbers.randn(8, 1))]
    product = by_rows(operator.matmul)

    def net(rows):
        return product(tf.tanh(product(by_rows(tf.matmul)(rows, weights[0]), weights[1])), weights[2])

    yield from trained_by_hand(net, weights)
    yield from trained_by_hand(net, weights, graph=True)


@kind
def layers_within_a_function():
    """`by_rows` around calls of layers: the function is the outermost call."""
    first, _ = variables()
    head = L.Dense(1)
    head.build((None, 6))
    raw = [v.value if KERAS == 3 else v for v in head.trainable_variables]
    yield from trained_by_hand(by_rows(lambda rows: head(tf.tanh(rows @ first))), [first, *raw])


@kind(sample=True, divided="partly")
def penalties_in_lists_and_dictionaries_that_are_given():
    """What a function does to them it does to the caller's; one that only reads them is divided."""
    first, second = weights = variables()

    @by_rows
    def hidden(rows, penalties, options):
        penalties.append(0.05 * tf.reduce_sum(first**2))
        options["calls"] = options.get("calls", 0) + 1
        return tf.tanh(rows @ first)

    @by_rows
    def out(rows, scales, options):
        return rows @ second * scales[0] * options["scale"]

    for graph in (False, True):
        options = {"scale": 0.5}

        def loss(given, wanted, options=options):
            return given + options["calls"] * 0.01 * square(wanted, 0.0)

        def net(rows, options=options):
            penalties = []
            between = hidden(rows, penalties, options)
            return square(out(between, [2.0], options), rows[:, :1]) + tf.add_n(penalties)

        yield from trained_by_hand(net, weights, graph=graph, loss=loss)


class Growing(tf.Module):
    """A head for each task so far."""

    def __init__(self):
        super().__init__()
        self.heads = []

    def grow(self):
        self.heads.append(L.Dense(2))
        self.heads[-1].build((None, 8))

    def __call__(self, rows):
        return tf.concat([head(rows) for head in self.heads], 1)


@kind(sample=True)
def module_that_gets_another_layer_between_tasks():
    module = Growing()
    for _ in range(2):
        module.grow()
        weights = [weight for head in module.heads for weight in head.trainable_variables]
        yield from trained_by_hand(module, weights, graph=True)


@kind(divided="partly", sample=True)
def batches_of_which_the_first_have_one_row():
    net = mlp(6, 1)
    net(X[:2])
    for count in (1, 1, 1, 5, 1, 2):
        rows, wanted = some(count, X, Y)
        yield [net], descend_by_hand(0.1, net.trainable_variables, lambda r=rows, w=wanted: square(net(r), w))


@kind(divided="beside", sample=True)
def function_that_keeps_a_number_of_its_results():
    """A number in Python has no gradient: AutoGraph, which would take it for a tensor, compiles nothing of this."""
    first, second = weights = variables()
    mean, beside = [0.0], mlp(8, 1)
    beside(X[:1])

    @by_rows
    def net(rows):
        hidden = tf.tanh(rows @ first)
        mean[0] = 0.9 * mean[0] + float(tf.reduce_mean(hidden))
        return (hidden - mean[0]) @ second

    yield from trained_by_hand(lambda rows: net(rows) + beside(rows), [*weights, *beside.trainable_variables])
