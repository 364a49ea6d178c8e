"""What of a batch keeps one row for each of its examples, and what gives it another first axis."""

from __future__ import annotations

import libcst as cst

from ..program import Origins, argument

CONVERTS = frozenset({"numpy.array", "numpy.asarray", "numpy.ascontiguousarray", "numpy.float32", "numpy.stack"})
_NEW_AXIS = frozenset({"builtins.None", "tensorflow.newaxis", "numpy.newaxis"})


def turns(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether an expression of a batch gives it another first axis: `x[None]`, `tf.reshape(x, [1, -1])`, `x.T`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value == "T"
    if isinstance(node, cst.Subscript):
        first = node.slice[0].slice
        return isinstance(first, cst.Index) and origins.names.api(first.value) in _NEW_AXIS
    if not isinstance(node, cst.Call):
        return False
    api = origins.names.api(node.func)
    method = isinstance(node.func, cst.Attribute) and api is None
    name = cst.ensure_type(node.func, cst.Attribute).attr.value if method else (api or "").rpartition(".")[2]
    if name in {"transpose", "swapaxes"}:
        return True
    if name == "expand_dims":
        axis = argument(node, "axis", 1)
        return axis is None or (isinstance(axis.value, cst.Integer) and axis.value.value == "0")
    if name == "reshape":
        shape = node.args[0] if method and node.args else argument(node, "shape", 1)
        shape = shape or argument(node, "newshape", 1)
        value = shape.value if shape is not None else None
        value = value.elements[0].value if isinstance(value, cst.Tuple | cst.List) and value.elements else value
        return isinstance(value, cst.Integer)
    packs = api in CONVERTS or api in {"tensorflow.stack", "tensorflow.constant", "tensorflow.convert_to_tensor"}
    return packs and bool(node.args) and isinstance(node.args[0].value, cst.List | cst.Tuple)


def keeps_rows(call: cst.Call) -> bool:
    """`.astype(…)`, and `.reshape(-1, …)`, whose rows each come from one example."""
    assert isinstance(call.func, cst.Attribute)
    if call.func.attr.value != "reshape":
        return call.func.attr.value in {"astype", "copy"}
    first = call.args[0].value if call.args else None
    first = first.elements[0].value if isinstance(first, cst.Tuple | cst.List) and first.elements else first
    return isinstance(first, cst.UnaryOperation) and isinstance(first.operator, cst.Minus)
