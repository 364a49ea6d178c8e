"""Draws of NumPy's random numbers, and the size of their first axis."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..apis import DRAW_SIZES
from ..program import Origins, argument, is_none, method, receiver


@dataclass(frozen=True)
class Draw:
    """size: the length of the first axis, None where one number is drawn. known: whether that is certain."""

    size: cst.BaseExpression | None
    known: bool = True


def numpy_draw(origins: Origins, call: cst.Call) -> Draw | None:
    """The draw that a call is; None for any other call."""
    api, name = origins.called(call), drawn(origins, call)
    if api in {"random.sample", "random.choices"}:  # lists, of which no size is asked
        return Draw(None, known=False)
    takes_axes = name in {"rand", "randn"}
    if api.startswith("random.") or not (takes_axes or name in DRAW_SIZES):
        return None
    if any(a.star for a in call.args):
        return Draw(None, known=False)
    if takes_axes:
        return Draw(call.args[0].value if call.args else None)
    given = argument(call, "size", DRAW_SIZES[name])
    if given is None or is_none(origins, given.value):
        return Draw(None)
    if not isinstance(given.value, cst.Tuple | cst.List):
        return Draw(given.value)
    first = next(iter(given.value.elements), None)
    return Draw(first.value, known=isinstance(first, cst.Element)) if first is not None else Draw(None)


def drawn(origins: Origins, call: cst.Call) -> str:
    """The name of a function that draws from NumPy's or Python's random numbers, or of a method of such a generator."""
    module, _, name = origins.called(call).rpartition(".")
    if module:
        return name if module in {"numpy.random", "random"} else ""
    return method(call) if method(call) and origins.kinds(receiver(call)) == {Kind.GENERATOR} else ""
