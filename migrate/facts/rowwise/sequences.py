"""What a layer is given in a `Sequential` model: the values of the layer before it."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from ..apis import GIVES_ROWS_TO, INPUTS
from ..program import Origins, argument, method, receiver
from . import layers
from .values import BATCH, Of, Value, has_rows


def given_to(origins: Origins, sought: cst.CSTNode, first: Value) -> Value | None:
    """What a class of the file, or a function that its layers are given, gets in the Sequential models of the file.

    None where it is in none. `first` is what the models are given themselves.
    """
    found: list[Value] = []
    for members in _sequences(origins):
        value = first
        for made in members:
            before, value = value, _after(origins, made, value)
            if origins.constructed(made) is sought:
                found.append(before)
            elif isinstance(made, cst.Call) and any(origins.made(a.value) is sought for a in made.args):
                found.append(before if origins.called(made) in GIVES_ROWS_TO else value)
    ranks = {(v.rank, v.base) for v in found}
    return found[0] if len(ranks) == 1 else None


def _sequences(origins: Origins) -> list[list[cst.CSTNode]]:
    """The layers of each Sequential model, in their order."""
    found: list[list[cst.CSTNode]] = []
    for call in origins.calls_to("keras.Sequential"):
        given = argument(call, "layers", 0)
        written = origins.made(given.value) if given is not None else None
        members = [origins.made(e.value) for e in written.elements] if isinstance(written, cst.List | cst.Tuple) else []
        added = (c for c in origins.index.methods("add") if c.args and origins.makers(receiver(c)) == {call})
        found.append([*members, *(origins.made(c.args[0].value) for c in added)])
    return found


def _after(origins: Origins, made: cst.CSTNode, value: Value) -> Value:
    """What a layer gives, by how many axes that has."""
    if not isinstance(made, cst.Call):
        return replace(BATCH, several=False)
    name = origins.called(made)
    if name in INPUTS:
        return _shaped(origins, made, 0) or value
    if not name.startswith("keras.layers."):
        return replace(BATCH, several=False)
    value = _shaped(origins, made, None) or value
    found = layers.stock(origins, made, made, [value])
    return found if has_rows(found) else replace(BATCH, several=False)


def _shaped(origins: Origins, made: cst.Call, place: int | None) -> Value | None:
    """By the shape that a layer is told."""
    for key in ("shape", "input_shape"):
        given = argument(made, key, place if key == "shape" else None)
        shape = origins.made(given.value) if given is not None and not method(given.value) else None
        if isinstance(shape, cst.Tuple | cst.List):
            return Value(Of.ROWS, rank=len(shape.elements) + 1)
    return Value(Of.ROWS, rank=2) if argument(made, "input_dim") and "Dense" in origins.called(made) else None
