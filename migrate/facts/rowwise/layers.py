"""What Keras' layers and models make of the rows of a batch: each row of itself, but for what an axis names."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from ..apis import (
    AXES_AFTER_LAYER,
    AXES_BESIDE_AXIS,
    AXIS_COMES_FIRST,
    DATA_LAYERS,
    LAYERS_ALONG_AXES,
    LAYERS_ALONG_LAST,
    LAYERS_KEEP_AXES,
    LAYERS_OF_ANY_AXIS,
    MERGES,
    MIXING_LAYERS,
    RECURRENT,
)
from ..program import Origins, Unknown, argument, ints, is_off
from . import values as rows
from .values import Value


def batch_axis(origins: Origins, made: cst.Call) -> cst.BaseExpression | None:
    """The axis that a layer of Keras' is given, where that is the batch's."""
    name = origins.called(made).rpartition(".")[2]
    if name in DATA_LAYERS | {"Concatenate"}:
        return None
    for key in AXES_BESIDE_AXIS:
        given = argument(made, key, 0 if name in AXIS_COMES_FIRST and key == "axis" else None)
        if given is not None and 0 in (ints(origins, given.value) or ()):
            return given.value
    return None


def stock(origins: Origins, call: cst.CSTNode, made: cst.Call, given: list[Value]) -> Value:
    """What a layer of Keras' gives that `made` makes, called with these values."""
    name = origins.called(made).rpartition(".")[2]
    if MIXING_LAYERS.match(origins.called(made)):
        return rows.mixed(made, "mixes the examples of each batch")
    if name == "Concatenate":
        axes = argument(made, "axis", 0)
        found = joined(call, given, (ints(origins, axes.value) or (None,))[0] if axes is not None else -1)
    else:
        found = rows.elementwise(call, given) if name.lower() in MERGES else rows.together(call, given)
    if not rows.has_rows(found):
        return found
    if (axis := batch_axis(origins, made)) is not None:
        because = Unknown(axis, "is the axis of the batch")
        return rows.mixed(made, "makes each example of all those of the batch", because)
    if found.axis != 0:
        last = rows.is_batch(found, -1) if name in LAYERS_ALONG_LAST else False
        if last:
            return rows.mixed(call, "goes along the last axis, which is that of the batch here")
        if LAYERS_OF_ANY_AXIS.fullmatch(name) and last is False:
            return found
        if LAYERS_ALONG_AXES.fullmatch(name) and found.axis > 0 and argument(made, "time_major") is None:
            return rows.mixed(call, "goes along the axis of the batch, which is not the first here")
        return rows.unknown(call, "calls a layer with values whose first axis is not the batch's")
    return _ranked(origins, name, made, found)


def _ranked(origins: Origins, name: str, made: cst.Call, found: Value) -> Value:
    """As many axes as a layer gives."""
    if name in AXES_AFTER_LAYER:
        return replace(found, rank=AXES_AFTER_LAYER[name], base=None)
    if name == "Embedding":
        return replace(found, rank=found.rank + 1)
    if name == "Reshape":
        shape = argument(made, "target_shape", 0)
        target = origins.made(shape.value) if shape is not None else made
        if not isinstance(target, cst.Tuple | cst.List):
            return _some(found)
        return replace(found, rank=len(target.elements) + 1, base=None)
    if f"keras.layers.{name}" in RECURRENT:
        sequences, state = argument(made, "return_sequences"), argument(made, "return_state")
        plain = name in {"LSTM", "GRU", "SimpleRNN"} and (state is None or is_off(origins, state.value))
        if sequences is None or is_off(origins, sequences.value):
            return replace(found, rank=2, base=None) if plain else _some(found)
        return replace(found, rank=3, base=None) if plain else _some(found)
    return found if LAYERS_KEEP_AXES.fullmatch(name) else _some(found)


def joined(node: cst.CSTNode, given: list[Value], axis: int | None) -> Value:
    """What is put side by side along an axis, which is not that of the batch."""
    first = next((v for v in given if rows.has_rows(v)), None)
    if axis == 0 and first is not None and first.axis == 0:
        return rows.unknown(node, "puts other rows behind those of the batch")
    return rows.elementwise(node, given)


def _some(found: Value) -> Value:
    """Rows with an unknown number of axes, or several such values."""
    return replace(found, rank=2, base=rows.UNRANKED, several=True)


def of_model(node: cst.CSTNode, given: list[Value]) -> Value:
    """What a model makes of each example: what it consists of is asked where it is made."""
    found = rows.together(node, given)
    if not rows.has_rows(found):
        return found
    if found.axis != 0:
        return rows.unknown(node, "calls a model with values whose first axis is not the batch's")
    return _some(found)


def of_loss(node: cst.CSTNode, made: cst.Call, given: list[Value]) -> Value:
    """What a loss object makes of labels and outputs: one number, or one of each example."""
    found = rows.together(node, given)
    reduction = argument(made, "reduction")
    return found if not rows.has_rows(found) or reduction is not None else rows.whole(node)
