"""Draws of NumPy's random numbers, and the size of their first axis."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, method, receiver


@dataclass(frozen=True)
class Draw:
    """size: the length of the first axis, None where one number is drawn. known: whether that is certain."""

    size: cst.BaseExpression | None
    known: bool = True


def drawn(origins: Origins, call: cst.Call) -> str:
    """The name of a function that draws from NumPy's or Python's random numbers, or of a method of such a generator."""
    module, _, name = origins.called(call).rpartition(".")
    if module:
        return name if module in {"numpy.random", "random"} else ""
    return method(call) if method(call) and origins.kinds(receiver(call)) == {Kind.GENERATOR} else ""
