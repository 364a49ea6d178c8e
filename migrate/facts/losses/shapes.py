"""Shapes: whose shape a value is, and which of its numbers is the size of the batch."""

from __future__ import annotations

import libcst as cst

from ..program import ITER, Origins, method, receiver, within_itself
from . import batch_values as batch
from .batch_values import Reduction, Value


@within_itself(None)
def shaped(origins: Origins, node: cst.CSTNode) -> cst.BaseExpression | None:
    """`x` where the node is its shape: `x.shape`, `tf.shape(x)`, `x.shape.as_list()`; through names too."""
    found = origins.made(node)
    if isinstance(found, cst.Attribute) and found.attr.value == "shape" and origins.names.api(found) is None:
        return found.value
    shapes = {"tensorflow.shape", "keras.ops.shape", "numpy.shape"}
    if isinstance(found, cst.Call) and origins.called(found) in shapes and found.args and not found.args[0].star:
        return found.args[0].value
    if not method(found) or not isinstance(found, cst.Call) or found.args:
        return None
    if method(found) == "get_shape":
        return receiver(found)
    return shaped(origins, receiver(found)) if method(found) in {"as_list", "numpy"} else None


def size(origins: Origins, call: cst.Call) -> cst.BaseExpression | None:
    """`x` in `len(x)` and `tf.size(x)`: as many elements as there are examples, or a fixed number for each."""
    api = origins.called(call)
    if api not in {"builtins.len", "tensorflow.size", "keras.ops.size", "numpy.size"} or not call.args:
        return None
    # The length of a whole element may be that of a tuple.
    whole = api == "builtins.len" and any(o.path[-1:] == (ITER,) for o in origins.of(call.args[0].value))
    return None if whole else call.args[0].value


def axis_of(node: cst.Subscript) -> int | None:
    """`1` in `shape[1]`; None for anything else."""
    index = node.slice[0].slice if len(node.slice) == 1 else None
    return (
        index.value.evaluated_value if isinstance(index, cst.Index) and isinstance(index.value, cst.Integer) else None
    )


def dimension(value: Value, axis: int | None) -> Value:
    """The length of an axis of the value."""
    if value.reduction in batch.FIXED:
        return value if value == batch.NOTHING else batch.NUMBER
    if axis is None or value.reduction is not Reduction.PER_EXAMPLE or value.guessed:
        return batch.UNKNOWN
    return batch.COUNT if axis == 0 else batch.NUMBER


def shared(value: Value, adds_up: bool | None) -> Value:
    """A sum or mean over the batch, added up over the workers or averaged: a number of the global batch.

    The mean of the workers' sums of data grows as the local batch does: it may stand for its size.
    """
    if value == batch.NOTHING:
        return value
    if value.reduction is Reduction.SUM and value.given and adds_up is False:
        return batch.COUNT
    whole = {Reduction.SUM: batch.WHOLE_SUM, Reduction.MEAN: batch.WHOLE_MEAN}.get(value.reduction, batch.UNKNOWN)
    fits = adds_up is (value.reduction is Reduction.SUM)
    return whole if fits and not value.guessed else batch.UNKNOWN
