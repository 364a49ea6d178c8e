"""Writers that no exact rewrite keeps to one rank."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from ...outputs import EffectKind
from ..outputs import Effect, Writers
from ..program import Origins, Problem, method

_PLACED = frozenset({EffectKind.SAVE, EffectKind.OPEN, EffectKind.OPEN_FORMAT, EffectKind.LATEST})


def unplaced(effect: Effect, origins: Origins, certain: Callable[[cst.CSTNode], bool]) -> Problem | None:
    """A writer that cannot be kept to one rank as it stands."""
    if effect.kind is EffectKind.EVENTS and isinstance(effect.call, cst.Call) and not method(effect.call):
        reason = "the summary writer is made by a function imported by itself"
        return Problem("TFDP051", effect.call, reason, "call it as tf.summary.create_file_writer(…)")
    if effect.guard is not None or effect.kind not in _PLACED:
        return None
    if effect.kind in {EffectKind.OPEN, EffectKind.OPEN_FORMAT}:
        return _unopened(effect, origins)
    if effect.decides:
        return _failing(effect, certain)
    parent = origins.index.parents[effect.call]
    statement = cst.Assign | cst.AnnAssign | cst.Return | cst.Arg | cst.NamedExpr
    if effect.kind is EffectKind.SAVE and not isinstance(parent, statement):
        reason = "the value of this writing call is used where it cannot be given to all workers"
        if isinstance(origins.index.statement_of(effect.call), cst.Expr):
            reason = "this writing call stands inside an expression, where it cannot be kept to rank 0"
    elif not certain(effect.call):
        reason = "the value of this writing call is used, under a condition that may differ by worker"
        if effect.kind is EffectKind.LATEST:
            reason = "rank 0 alone knows this checkpoint, and a condition that may differ by worker asks for it"
    else:
        return None
    return Problem("TFDP050", effect.call, reason, "put the call in a statement of its own, without using its value")


def _failing(effect: Effect, certain: Callable[[cst.CSTNode], bool]) -> Problem | None:
    """A call of rank 0 whose failing every worker goes by, where they do not certainly come together."""
    if certain(effect.call):
        return None
    reason = "the script goes on in another way where this call fails, and not all workers certainly come to it"
    step = "let the exception handler only report, or move the call to where all workers come to it"
    return Problem("TFDP050", effect.call, reason, step)


def _unopened(effect: Effect, origins: Origins) -> Problem | None:
    """A file that all workers would write, and that the null device cannot stand for."""
    assert isinstance(effect.call, cst.Call)
    mode = Writers(origins).mode(effect.call)
    next_step = "open it in a `with` statement of its own, whose body only writes, or under `if dp.rank() == 0:`"
    if effect.kind is EffectKind.OPEN_FORMAT:
        reason = "every worker would write this file, and what is done with it is needed by all"
    elif mode is None:
        reason = "cannot tell whether this file is read or written; every worker would write it"
    elif "+" in mode or "x" in mode:
        reason = f"every worker would open this file in mode {mode!r}"
    elif not effect.call.args or effect.call.args[0].star:
        reason = "every worker would write this file, and its path is not the first argument"
    else:
        return None
    return Problem("TFDP050", effect.call, reason, next_step)
