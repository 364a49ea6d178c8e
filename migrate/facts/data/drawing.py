"""Draws of NumPy's and Python's random numbers."""

from __future__ import annotations

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, method, receiver


def drawn(origins: Origins, call: cst.Call) -> str:
    """The name of a function that draws from NumPy's or Python's random numbers, or of a method of such a generator."""
    module, _, name = origins.called(call).rpartition(".")
    if module:
        return name if module in {"numpy.random", "random"} else ""
    return method(call) if method(call) and origins.kinds(receiver(call)) == {Kind.GENERATOR} else ""
