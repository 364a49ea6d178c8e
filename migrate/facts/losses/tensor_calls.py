"""What TensorFlow's functions make of values that depend on the batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from ...catalogue import KINDS, Kind
from ..apis import NAMES_OF_OPS, OPERANDS, SETTINGS
from ..program import Origins, argument, axes, ints, is_off, plain
from . import batch_values as batch
from .batch_values import Reduction, Value
from .shapes import dimension, shaped

Evaluate = Callable[[cst.CSTNode], Value]
Quotient = Callable[[Value, Value, cst.BaseExpression], Value]

_MODULES = ("tensorflow", "tensorflow.math", "tensorflow.nn")  # where Keras' ops are found
_NO_MEANS = ("kl_divergence", "kld", "KLD", "kullback", "cosine")  # along the last axis
_FLATTENED = frozenset({"keras.backend.flatten", "keras.backend.batch_flatten", "keras.ops.ravel"})


def binary(operator: str, left: Value, right: Value) -> Value:
    """`left operator right`, the operator under libcst's name."""
    if operator in {"Add", "Subtract"}:
        return batch.added((left, right))
    known = {"Multiply": batch.multiplied, "Divide": batch.divided, "MatrixMultiply": batch.matrix_product}
    return known[operator](left, right) if operator in known else batch.elementwise((left, right))


class TensorCalls:
    """Calls of functions that the catalogue knows."""

    def __init__(self, origins: Origins, value: Evaluate, quotient: Quotient) -> None:
        self._origins, self._value, self._quotient = origins, value, quotient
        self._by_kind: dict[Kind, Callable[[cst.Call, str], Value]] = {
            Kind.MEAN: lambda call, _: batch.reduced(self._operand(call), axes(origins, call, 1), batch.MEAN),
            Kind.SUM: lambda call, _: batch.reduced(self._operand(call), axes(origins, call, 1), batch.SUM),
            Kind.REGULARIZER: lambda call, _: batch.reduced(self._operand(call), (), batch.SUM),
            Kind.LOSS_FUNCTION: self._loss_function,
            Kind.VARIABLE: lambda _, __: batch.CONSTANT,
            Kind.LITERAL: self._literal,
            Kind.DRAW: self._draw,
            Kind.PASS: lambda call, _: self._operand(call),
            Kind.ELEMENTWISE: self._elementwise,
            Kind.OPERATOR: self._operator,
            Kind.ROWS: self._rows,
            Kind.ALONG: self._along,
            Kind.STATISTIC: self._statistic,
            Kind.LAYOUT: self._layout,
        }
        self._layouts: dict[str, Callable[[cst.Call], Value]] = {
            "broadcast_to": self._broadcast_to,
            "reshape": self._reshape,
            "flatten": lambda call: self._moved(call, allowed=True, line=True),
            "ravel": lambda call: self._moved(call, allowed=True, line=True),
            "batch_flatten": lambda call: self._moved(call, allowed=True, deep=True),
            "squeeze": self._squeeze,
            "expand_dims": self._expand_dims,
            "transpose": self._transpose,
            "matmul": self._matmul,
            "concat": self._concat,
            "stack": self._stack,
            "split": self._split,
            "tile": lambda call: self._spread(self._operand(call)),
            "fill": self._fill,
        }

    def kind(self, func: cst.CSTNode) -> tuple[Kind | None, str]:
        """What the catalogue says of a function, and its name; Keras' ops are TensorFlow's of the same name."""
        api = self._origins.names.api(func) or ""
        rest, names = api.rpartition(".")[2], [api]
        if api == "keras.backend.binary_crossentropy":
            return Kind.ELEMENTWISE, api
        if api in _FLATTENED:
            return Kind.LAYOUT, api
        if api.startswith(("keras.ops.", "keras.backend.")):
            names = [f"{module}.{NAMES_OF_OPS.get(rest, rest)}" for module in _MODULES]
        return next(((KINDS[n], n) for n in names if n in KINDS), (None, api))

    def knows(self, kind: Kind | None) -> bool:
        """Whether calls of this kind are answered here."""
        return kind in self._by_kind

    def of(self, call: cst.Call, kind: Kind, name: str) -> Value:
        """The value of a call of the named function."""
        return self._by_kind[kind](call, name) if not any(a.star for a in call.args) else batch.UNKNOWN

    # --- arguments ----------------------------------------------------------------------------------------------------

    def _operand(self, call: cst.Call) -> Value:
        first = next((a for a in call.args if a.keyword is None or a.keyword.value in OPERANDS), None)
        return self._value(first.value) if first is not None else batch.UNKNOWN

    def _operands(self, call: cst.Call) -> list[Value]:
        given = [a.value for a in call.args if a.keyword is None or a.keyword.value not in SETTINGS | {"axis"}]
        return [self._value(v) for v in given]

    def _both(self, call: cst.Call, left: str, right: str) -> tuple[Value, Value]:
        given = [argument(call, left, 0), argument(call, right, 1)]
        values = [self._value(a.value) if a is not None else batch.UNKNOWN for a in given]
        return values[0], values[1]

    def _axis_of_example(self, call: cst.Call) -> bool:
        """Whether the axis, where a call names one, is not the batch's."""
        given = argument(call, "axis")
        found = ints(self._origins, given.value) if given is not None else (-1,)
        return found is not None and batch.of_each_example(batch.DEEP_ROWS, found)

    # --- functions ----------------------------------------------------------------------------------------------------

    def _loss_function(self, call: cst.Call, name: str) -> Value:
        """The mean, or the sum over the classes, along the last axis: of one value per example that is the batch's."""
        given = [a.value for a in call.args if a.keyword is None]
        more = [a for a in given[2:] if not plain(self._origins, a) or isinstance(a, cst.Integer | cst.UnaryOperation)]
        if more or not self._axis_of_example(call):
            return batch.UNKNOWN
        named = {"y_true", "y_pred", "labels", "logits", "target", "output"}
        given = [*given[:2], *(a.value for a in call.args if a.keyword is not None and a.keyword.value in named)]
        found = batch.elementwise([self._value(v) for v in given])
        of_classes = "categorical" in name or name.startswith("tensorflow.nn.")  # then their axis is not the batch's
        if found.reduction is not Reduction.PER_EXAMPLE or found.deep or of_classes:
            return replace(found, deep=False)
        if found.line and not any(word in name for word in _NO_MEANS):
            return batch.reduced(found, (), batch.MEAN)
        return batch.UNKNOWN if found.line else replace(found, averaged=True)

    def _shape_of_made(self, call: cst.Call) -> tuple[Value, int]:
        """The first number of the shape that a new tensor is given, and how many there are (0: not known)."""
        given = argument(call, "shape", 0)
        if given is None or (origin := self._origins.one(given.value)) is None or origin.path:
            return batch.UNKNOWN, 0
        if (of := shaped(self._origins, given.value)) is not None:
            return dimension(self._value(of), 0), 0
        if isinstance(origin.node, cst.List | cst.Tuple) and origin.node.elements:
            return self._value(origin.node.elements[0].value), len(origin.node.elements)
        return self._value(given.value), 1

    def _draw(self, call: cst.Call, name: str) -> Value:  # noqa: ARG002
        first, length = self._shape_of_made(call)
        counted = first == batch.COUNT
        drawn = replace(batch.GIVEN_ROWS, deep=counted and length > 1, guessed=not counted)
        return first if first == batch.NOTHING else drawn

    def _literal(self, call: cst.Call, name: str) -> Value:  # noqa: ARG002
        """Zeros and ones for each example, or those of a fixed shape."""
        first, length = self._shape_of_made(call)
        if first == batch.COUNT:
            return replace(batch.GIVEN_ROWS, deep=length > 1)
        return first if first == batch.NOTHING else batch.NUMBER

    def _elementwise(self, call: cst.Call, name: str) -> Value:
        if name == "tensorflow.math.divide_no_nan":
            return self._divided(call)
        if name.endswith(".where") and len(call.args) < 3:
            return batch.UNKNOWN  # it gives places
        found = batch.elementwise(self._operands(call))
        root = name.endswith(".sqrt") and found.growth % 2 == 0
        return replace(found, growth=found.growth // 2) if root else found

    def _operator(self, call: cst.Call, name: str) -> Value:
        last = name.rpartition(".")[2]
        operator = "Divide" if last == "truediv" else last.capitalize()  # libcst's name
        return self._divided(call) if operator == "Divide" else binary(operator, *self._both(call, "x", "y"))

    def _divided(self, call: cst.Call) -> Value:
        divisor = argument(call, "y", 1)
        return self._quotient(*self._both(call, "x", "y"), divisor.value) if divisor is not None else batch.UNKNOWN

    def average_loss(self, call: cst.Call) -> Value:
        """`tf.nn.compute_average_loss(losses, global_batch_size=n)`: the sum over the examples, divided by n."""
        divisor, given = argument(call, "global_batch_size"), argument(call, "per_example_loss", 0)
        if given is None or len(call.args) > 1 + (divisor is not None):
            return batch.UNKNOWN
        summed = batch.reduced(self._value(given.value), (), batch.SUM)
        if divisor is None:
            return batch.divided(summed, batch.COUNT)
        return self._quotient(summed, self._value(divisor.value), divisor.value)

    def _rows(self, call: cst.Call, name: str) -> Value:
        """The other arguments are weights and settings."""
        operands = self._operands(call)
        found = batch.elementwise(operands)
        if found.reduction is not Reduction.PER_EXAMPLE:
            return found
        examples = [i for i, v in enumerate(operands) if v.reduction is Reduction.PER_EXAMPLE]
        looks_up = name.endswith("embedding_lookup") and examples != [1]
        coupled = len(examples) > 1 or looks_up or not self._axis_of_example(call)
        return batch.UNKNOWN if coupled else replace(found, deep=True)

    def _along(self, call: cst.Call, name: str) -> Value:
        given = axes(self._origins, call, 1)
        if given == () and not name.endswith("l2_normalize"):
            given = (-1,)
        return batch.statistic(self._operand(call), given, kept=True)

    def _statistic(self, call: cst.Call, name: str) -> Value:
        return batch.statistic(self._operand(call), axes(self._origins, call, 2 if name.endswith("norm") else 1))

    # --- elements moved to other places -------------------------------------------------------------------------------

    def _layout(self, call: cst.Call, name: str) -> Value:
        return self._layouts[name.rpartition(".")[2]](call)

    def _moved(self, call: cst.Call, allowed: bool, deep: bool = False, line: bool = False) -> Value:
        value = self._operand(call)
        if value.reduction is not Reduction.PER_EXAMPLE:
            return value
        return replace(value, deep=deep, line=line, opaque=False) if allowed else batch.UNKNOWN

    def _reshape(self, call: cst.Call) -> Value:
        """The batch's axis must stay the first: `[-1, …]`, `[batch_size, …]` or the shape of another value."""
        given = argument(call, "shape", 1) or argument(call, "newshape")
        shape = self._origins.made(given.value) if given is not None else None
        if given is None or shape is None:
            return self._moved(call, allowed=False)
        if isinstance(shape, cst.List | cst.Tuple) and shape.elements:
            first = shape.elements[0]
            fixed = not isinstance(first, cst.Element) or isinstance(first.value, cst.Integer)
            spread = len(shape.elements) > 2 and ints(self._origins, shape.elements[1].value) == (1,)
            deep = len(shape.elements) > 1
            return self._moved(call, allowed=not fixed and not spread, deep=deep, line=not deep)
        line = ints(self._origins, given.value) == (-1,)
        return self._moved(call, allowed=line or self._is_shape(shape), line=line)

    def _is_shape(self, node: cst.CSTNode) -> bool:
        """`value.shape`, `tf.shape(value)`."""
        attribute = isinstance(node, cst.Attribute) and node.attr.value == "shape"
        return attribute or self._origins.called(node) == "tensorflow.shape"

    def _broadcast_to(self, call: cst.Call) -> Value:
        given = argument(call, "shape", 1)
        return self._moved(call, allowed=given is not None and self._is_shape(given.value), deep=False)

    def _squeeze(self, call: cst.Call) -> Value:
        given = axes(self._origins, call, 1)
        return self._moved(call, allowed=given is not None and all(a > 0 or a == -1 for a in given), deep=False)

    def _expand_dims(self, call: cst.Call) -> Value:
        """A new axis between the batch's and others pairs examples with others when it is spread."""
        given = axes(self._origins, call, 1)
        first = given[0] if given else 0
        spread = first == 1 and self._operand(call).deep
        return self._moved(call, allowed=(first > 0 or first == -1) and not spread, deep=True)

    def _transpose(self, call: cst.Call) -> Value:
        given = argument(call, "perm", 1) or argument(call, "axes")
        order = ints(self._origins, given.value) if given is not None else None
        return self._moved(call, allowed=(order or (1,))[0] == 0, deep=True)

    def _matmul(self, call: cst.Call) -> Value:
        left, right = self._both(call, "a", "b")
        turns = [argument(call, keyword, position) for keyword, position in (("transpose_a", 2), ("adjoint_a", 4))]
        turned = any(t is not None and not is_off(self._origins, t.value) for t in turns)
        return batch.matrix_product(left, right, turned)

    def _parts(self, call: cst.Call) -> list[Value] | None:
        first = next((a.value for a in call.args if a.keyword is None or a.keyword.value == "values"), None)
        elements = first.elements if isinstance(first, cst.List | cst.Tuple) else ()  # under a name it may change
        written = bool(elements) and all(isinstance(e, cst.Element) for e in elements)
        return [self._value(e.value) for e in elements] if written else None

    def _concat(self, call: cst.Call) -> Value:
        parts, given = self._parts(call), axes(self._origins, call, 1)
        found = batch.elementwise(parts or [batch.UNKNOWN])
        if parts is None or found.reduction is not Reduction.PER_EXAMPLE:
            return found
        examples = all(p.reduction in {Reduction.PER_EXAMPLE, Reduction.NOTHING} for p in parts)
        beside = given is not None and batch.of_each_example(found, given)
        below = given in {(0,), (-1,)} and examples  # equally many of each on every rank
        return found if beside or below else batch.UNKNOWN

    def _stack(self, call: cst.Call) -> Value:
        parts, given = self._parts(call), axes(self._origins, call, 1)
        if parts is None:
            return self._operand(call)
        found = batch.added(parts)
        if found.reduction is not Reduction.PER_EXAMPLE:
            return found
        return replace(found, deep=True) if given in {(1,), (-1,)} else batch.UNKNOWN

    def _fill(self, call: cst.Call) -> Value:
        given = argument(call, "value", 1)
        return self._spread(self._value(given.value) if given is not None else batch.UNKNOWN)

    def _spread(self, value: Value) -> Value:
        """Something put in many places."""
        if value.mixed or value == batch.NOTHING:
            return value
        return batch.OF_ALL if batch.is_of_all(value) else batch.UNKNOWN

    def _split(self, call: cst.Call) -> Value:
        value, given = self._operand(call), axes(self._origins, call, 2)
        if value.reduction is not Reduction.PER_EXAMPLE:
            return value
        return replace(value, opaque=True) if batch.of_each_example(value, given) else batch.UNKNOWN
