"""What of a batch keeps one row for each of its examples, and what gives it another first axis."""

from __future__ import annotations

import libcst as cst

from ..apis import MAKES_ARRAY, NEW_AXIS
from ..program import Origins, argument, method


def turns(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether an expression of a batch gives it another first axis: `x[None]`, `tf.reshape(x, [1, -1])`, `x.T`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value == "T"
    if isinstance(node, cst.Subscript):
        first = node.slice[0].slice
        return isinstance(first, cst.Index) and origins.names.api(first.value) in NEW_AXIS
    if not isinstance(node, cst.Call):
        return False
    api = origins.called(node)
    name = api.rpartition(".")[2] or method(node)
    if name in {"transpose", "swapaxes"}:
        return True
    if name == "expand_dims":
        axis = argument(node, "axis", 1)
        return axis is None or (isinstance(axis.value, cst.Integer) and axis.value.value == "0")
    if name == "reshape":
        shape = node.args[0] if not api and node.args else argument(node, "shape", 1)
        shape = shape or argument(node, "newshape", 1)
        return isinstance(_first(shape), cst.Integer)
    packs = api in MAKES_ARRAY or api in {"tensorflow.stack", "tensorflow.constant", "tensorflow.convert_to_tensor"}
    return packs and bool(node.args) and isinstance(node.args[0].value, cst.List | cst.Tuple)


def keeps_rows(call: cst.Call) -> bool:
    """`.astype(…)`, and `.reshape(-1, …)`, whose rows each come from one example."""
    if method(call) != "reshape":
        return method(call) in {"astype", "copy"}
    first = _first(call.args[0] if call.args else None)
    return isinstance(first, cst.UnaryOperation) and isinstance(first.operator, cst.Minus)


def _first(shape: cst.Arg | None) -> cst.BaseExpression | None:
    """The first axis of a shape that is given as an argument."""
    value = shape.value if shape is not None else None
    return value.elements[0].value if isinstance(value, cst.Tuple | cst.List) and value.elements else value
