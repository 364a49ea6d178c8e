"""What may be done to a batch of rows, row by row or across rows, and the places of a script where it may stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fragments import data, functional, own_model
from sketch import LOOPS, ROADS, TAPES, Sketch

ROWWISE = (
    "{0}[:, ::-1]",
    "tf.reverse({0}, axis=[1])",
    "tf.roll({0}, shift=1, axis=1)",
    "{0} - tf.reduce_mean({0}, axis=1, keepdims=True)",
    "{0} / (1.0 + tf.reduce_max(tf.abs({0}), axis=-1, keepdims=True))",
    "tf.nn.softmax({0}) + {0}",
    "tf.cumsum({0}, axis=1)",
    "tf.tanh({0}) * 0.5",
    "tf.math.l2_normalize({0}, axis=-1)",
    "tf.concat([{0}[:, 1:], {0}[:, :1]], axis=1)",
    "tf.sort({0}, axis=-1)",
    "{0} + tf.reduce_sum({0} ** 2, axis=1, keepdims=True)",
    "tf.einsum('ij,ij->ij', {0}, {0})",
    "tf.where({0} > 0.0, {0}, 0.1 * {0})",
    "tf.stack(tf.unstack({0}, axis=1)[::-1], axis=1)",
    "tf.transpose(tf.nn.softmax(tf.transpose({0}), axis=0)) + {0}",
)
MIXING = (
    "{0}[::-1]",
    "{0} + 0.5 * {0}[::-1]",
    "tf.reverse({0}, axis=[0])",
    "tf.roll({0}, shift=1, axis=0)",
    "{0} - tf.reduce_mean({0}, axis=0)",
    "{0} - tf.reduce_mean({0})",
    "{0} / (1.0 + tf.reduce_max(tf.abs({0})))",
    "tf.nn.softmax({0}, axis=0) + {0}",
    "tf.cumsum({0}, axis=0)",
    "tf.math.l2_normalize({0}, axis=0)",
    "tf.concat([{0}[1:], {0}[:1]], axis=0)",
    "tf.sort({0}, axis=0)",
    "{0} + tf.reduce_sum({0} ** 2, axis=0, keepdims=True)",
    "tf.matmul(tf.matmul({0}, {0}, transpose_b=True), {0}) * 0.01",
    "tf.nn.softmax({0} @ tf.transpose({0})) @ {0}",
    "tf.gather({0}, tf.argsort({0}[:, 0]))",
    "tf.transpose(tf.nn.softmax(tf.transpose({0}))) + {0}",
    "{0} * tf.cast(tf.shape({0})[0], tf.float32) * 0.05",
    "tf.einsum('ij,kj,kl->il', {0}, {0}, {0}) * 0.01",
    "tf.reshape(tf.reverse(tf.reshape({0}, [-1]), [0]), tf.shape({0}))",
    "tf.where({0} > tf.reduce_mean({0}), {0}, 0.0)",
    "tf.stack(tf.unstack(tf.reverse({0}, [0]), axis=1), axis=1)",
    "({0} - tf.math.reduce_mean({0}, 0)) / (1.0 + tf.math.reduce_std({0}, 0))",
    "{0} + {0}[0]",
    "{0} * {0}[:1]",
)
# With NumPy arrays or eager tensors in a loop.
NUMPY_ROWWISE = (
    "np.tanh({0})",
    "{0} / (1.0 + np.abs({0}).max(axis=1, keepdims=True))",
    "np.clip({0}, -1.0, 1.0)",
    "np.asarray({0})[:, ::-1]",
    "{0} - np.mean({0}, axis=1, keepdims=True)",
)
NUMPY_MIXING = (
    "{0} / (1.0 + np.abs({0}).max())",
    "{0} - np.mean({0}, axis=0)",
    "np.asarray({0})[::-1].copy()",
    "np.roll({0}, 1, axis=0)",
    "({0} - np.mean({0})) / (1.0 + np.std({0}))",
    "0.7 * {0} + 0.3 * np.flip({0}, 0)",
    "np.asarray({0})[np.argsort(np.asarray({0})[:, 0])]",
)
KERAS_ROWWISE = (
    "{0} - keras.ops.mean({0}, axis=1, keepdims=True)",
    "keras.ops.flip({0}, axis=1)",
    "{0}[:, ::-1]",
    "keras.ops.softmax({0}, axis=-1)",
    "{0} * 0.5 + 0.1",
)
KERAS_MIXING = (
    "{0} - keras.ops.mean({0}, axis=0)",
    "keras.ops.flip({0}, axis=0)",
    "{0}[::-1]",
    "keras.ops.softmax({0}, axis=0)",
    "{0} / (1.0 + keras.ops.max(keras.ops.abs({0})))",
    "keras.ops.roll({0}, 1, axis=0)",
    "keras.ops.matmul(keras.ops.matmul({0}, keras.ops.transpose({0})), {0}) * 0.01",
    "{0} / (1.0 + keras.ops.std({0}, axis=0))",
)
STOCK_ROWWISE = (
    "keras.layers.Softmax()",
    "keras.layers.Softmax(axis=-1)",
    "keras.layers.UnitNormalization(axis=-1)",
    "keras.layers.LayerNormalization()",
    "keras.layers.ReLU()",
)
STOCK_MIXING = ("keras.layers.Softmax(axis=0)", "keras.layers.UnitNormalization(axis=0)", "keras.layers.Softmax(0)")

_LAYER = """\
class {name}(keras.layers.Layer):
    def call(self, {h}):
        return {inner}"""


def layer(s: Sketch, expression: str) -> None:
    """In the `call` of an own layer."""
    name, h = s.pen.pick(("Extra", "Change", "Norm", "Block")), s.pen.pick(("h", "t", "inputs_", "u"))
    inner = s.pen.called(expression, h)
    s.pen.tops.append(_LAYER.format(name=name, h=h, inner=inner))
    s.in_layers.append(f"{name}()")


def wrapped(s: Sketch, expression: str) -> None:
    """In a `Lambda` layer."""
    s.in_layers.append(f"keras.layers.Lambda({s.pen.function(expression)})")


def activation(s: Sketch, expression: str) -> None:
    """As the activation of a layer."""
    function = s.pen.function(expression)
    s.in_layers.append(
        s.pen.pick((f"keras.layers.Dense(4, activation={function})", f"keras.layers.Activation({function})"))
    )


def stock(s: Sketch, expression: str) -> None:
    """A layer of Keras."""
    s.in_layers.append(expression)


def expression_of_tensors(s: Sketch, expression: str) -> None:
    """An expression of the functional API."""
    functional(s, ["keras.layers.Dense(4)({0})", s.pen.called(expression, "{0}")])


def model_call(s: Sketch, expression: str) -> None:
    """In the `call` of an own model."""
    own_model(s, ["keras.layers.Dense(4)"], changed=s.pen.called(expression, "{0}"))


def stage(s: Sketch, expression: str) -> None:
    """In a `.map()` of whole batches."""
    changed = s.pen.called(expression, "{0}")
    if s.pen.maybe():
        function = s.pen.name("helper")
        s.pen.tops.append(f"def {function}(p, q):\n    return {changed.format('p')}, q")
        data(s, f".map({function})", ("tensors", "shuffled", "generator"))
    else:
        data(s, f".map(lambda p, q: ({changed.format('p')}, q))", ("tensors", "shuffled", "generator"))


def loop(s: Sketch, expression: str) -> None:
    """In the loop, to the batch that the step is given."""
    s.in_batch.append(f"{s.xb} = {s.pen.called(expression, s.xb)}")


def step(s: Sketch, expression: str) -> None:
    """In the step, to the batch that the model is given."""
    s.step_rows = s.pen.called(expression, "{0}")


def outputs(s: Sketch, expression: str) -> None:
    """In the loss, to what the model gives."""
    s.pen.without = {"static"}
    s.loss = f"tf.reduce_mean(tf.square({{0}} - {s.pen.called(expression, '{1}')}))"


LOST_IN_A_LOSS = (
    "tf.stack(tf.unstack(tf.reverse({0}, [0]), axis=1), axis=1)",
    "tf.where({0} > tf.reduce_mean({0}), {0}, 0.0)",
    "Rows.mixed({0})",
)


def outputs_lost(s: Sketch) -> None:
    """In the loss, by expressions that are not seen through, or in a static method."""
    s.pen.tops.append(
        f"class Rows:\n    @staticmethod\n    def mixed(h):\n        return {s.pen.pick(MIXING).format('h')}"
    )
    s.loss = f"tf.reduce_mean(tf.square({{0}} - {s.pen.pick(LOST_IN_A_LOSS).format('{1}')}))"


# place -> what it does, the roads that have it, expressions row by row, expressions across rows
PLACES: dict[str, tuple[Callable[[Sketch, str], None], tuple[str, ...], Sequence[str], Sequence[str]]] = {
    "layer": (layer, ROADS, ROWWISE, MIXING),
    "lambda": (wrapped, ROADS, ROWWISE, MIXING),
    "activation": (activation, ROADS, ROWWISE, MIXING),
    "stock": (stock, ROADS, STOCK_ROWWISE, STOCK_MIXING),
    "functional": (expression_of_tensors, (*LOOPS, "fit"), KERAS_ROWWISE, KERAS_MIXING),
    "call": (model_call, (*LOOPS, "fit"), ROWWISE, MIXING),
    "map": (stage, ROADS, ROWWISE, MIXING),
    "loop": (loop, LOOPS, NUMPY_ROWWISE, NUMPY_MIXING),
    "step": (step, (*TAPES, "train_step"), ROWWISE, MIXING),
    "loss": (outputs, ROADS, ("tf.tanh({0}) * 0.5", "{0} * 2.0 - 0.1"), [m for m in MIXING if m not in LOST_IN_A_LOSS]),
}
