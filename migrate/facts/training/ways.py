"""Calls that train nothing: `run_epoch(valid, False)` of a function that takes gradients only `if training:`."""

from __future__ import annotations

from itertools import pairwise

import libcst as cst

from ..program import Frames, Origins, reached
from .tapes import Gradient


def leads_to_no_update(origins: Origins, gradient: Gradient, calls: tuple[cst.CSTNode, ...]) -> bool:
    """Whether the gradient is certainly not taken, or not applied, by way of the calls, the innermost first."""
    frames = _frames(origins, calls)
    if any(reached(origins, node, frames) is False for node in calls):
        return True
    return bool(gradient.updates) and all(reached(origins, u.call, frames) is False for u in gradient.updates)


def _frames(origins: Origins, calls: tuple[cst.CSTNode, ...]) -> Frames:
    found: list[tuple[cst.FunctionDef, cst.Call]] = []
    for inner, outer in pairwise(calls):
        function = origins.index.enclosing_function(inner)
        if function is not None and isinstance(outer, cst.Call):
            found.append((function, outer))
    return tuple(reversed(found))
