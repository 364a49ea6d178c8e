"""Whether what `train_on_batch` is given comes from the batches of its loop, or from somewhere that no rule deals."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from tfdp.migrate.catalogue import Kind
from tfdp.migrate.facts.batch_values import Reduction
from tfdp.migrate.facts.draws import numpy_draw
from tfdp.migrate.facts.flow import within
from tfdp.migrate.facts.loops import TrainingLoop
from tfdp.migrate.facts.losses import Losses
from tfdp.migrate.facts.origins import Origins
from tfdp.migrate.facts.parts import parts
from tfdp.migrate.facts.problem import Problem

_KNOWN = ("tensorflow.", "keras.", "numpy.", "builtins.", "math.", "itertools.", "tfdp.runtime.")
_CHANGES = frozenset(
    {"astype", "reshape", "copy", "numpy", "flatten", "ravel", "squeeze", "repeat", "transpose", "append"}
)


def undealt(origins: Origins, losses: Losses, loops: Iterable[TrainingLoop]) -> list[Problem]:
    """Examples that code outside the file gives, of nothing that is dealt: all workers may get the same."""
    reason = "where these examples come from is not visible: all workers may train on the same ones"
    next_step = "read the data in this file: slice arrays, index them by a NumPy draw, or iterate a tf.data.Dataset"
    given = ((v, loop) for loop in loops if not loop.gradient.wrapped for v in _given(loop))
    opaque = dict.fromkeys(v for v, loop in given if _is_opaque(origins, losses, v, loop))
    return [Problem("TFDP010", v, reason, next_step) for v in opaque]


def _given(loop: TrainingLoop) -> tuple[cst.BaseExpression, ...]:
    """What each step of a loop is given: by `train_on_batch`, or by the call of the function with the tape."""
    step = loop.calls[-1]
    if loop.gradient.fed or len(loop.calls) == 1 or not isinstance(step, cst.Call):
        return loop.gradient.fed
    return tuple(a.value for a in step.args if not a.star)


def _is_opaque(origins: Origins, losses: Losses, value: cst.BaseExpression, loop: TrainingLoop) -> bool:
    found = parts(origins, value)
    unseen = [n for n in found if isinstance(n, cst.Call) and _unseen(origins, n) and not _is_drawn(origins, n)]
    if not any(loop.gradient.fed or within(origins.index, call, loop.loop.body) for call in unseen):
        return False
    return not any(_is_rows(losses, n) for n in found if isinstance(n, cst.Name | cst.Call | cst.Subscript))


def _is_drawn(origins: Origins, made: cst.Call) -> bool:
    """Whether random numbers say what a call gives: those are dealt themselves."""
    calls = [n for n in parts(origins, made) if isinstance(n, cst.Call)]
    return any(numpy_draw(origins, c) is not None or origins.kind(c.func) is Kind.DRAW for c in calls)


def _unseen(origins: Origins, call: cst.Call) -> bool:
    if (origins.names.api(call.func) or "").startswith(_KNOWN) or origins.function(call.func) is not None:
        return False
    if origins.constructed(call) is not None:
        return False
    return not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _CHANGES


def _is_rows(losses: Losses, node: cst.BaseExpression) -> bool:
    found = losses.value(node)
    return found is not None and found.reduction is Reduction.PER_EXAMPLE and not found.guessed
