"""Calls that train nothing: `run_epoch(valid, False)` of a function that takes gradients only `if training:`."""

from __future__ import annotations

from itertools import pairwise

import libcst as cst

from ..program import Frames, Origins, reached
from .tapes import Gradient


def leads_to_no_update(origins: Origins, gradient: Gradient, calls: tuple[cst.CSTNode, ...]) -> bool:
    """Whether the gradient is certainly not taken, or not applied, by way of the calls, the innermost first."""
    way = frames(origins, calls)
    if any(reached(origins, node, way) is False for node in calls):
        return True
    return bool(gradient.updates) and all(reached(origins, u.call, way) is False for u in gradient.updates)


def frames(origins: Origins, calls: tuple[cst.CSTNode, ...]) -> Frames:
    """The calls by which the functions on the way to the first of them are entered, the outermost first."""
    around = [(origins.index.enclosing_function(inner), outer) for inner, outer in pairwise(calls)]
    found = [(f, outer) for f, outer in around if f is not None and isinstance(outer, cst.Call)]
    return tuple(reversed(found))
