"""Whether what `train_on_batch` is given comes from the batches of its loop, or from somewhere that no rule shards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from ...catalogue import Kind
from ..apis import CHANGES_ARRAY, FRAMEWORKS
from ..data import numpy_draw
from ..losses import Losses, Reduction
from ..program import Origins, Problem, argument, closure, method, parts, reaching, within
from ..training import TrainingLoop

_COMPUTES = (*FRAMEWORKS, "itertools.", "tfdp.runtime.")


def fed_otherwise(origins: Origins, losses: Losses, loops: Sequence[TrainingLoop]) -> list[Problem]:
    """What steps are given that is not a worker's share of it."""
    return [*_unsharded(origins, losses, loops), *_weighted(origins, losses, loops)]


def _unsharded(origins: Origins, losses: Losses, loops: Iterable[TrainingLoop]) -> list[Problem]:
    """Examples that code outside the file gives, of nothing that is sharded: all workers may get the same."""
    reason = "cannot tell where these examples come from: all workers may train on the same ones"
    next_step = "read the data in this file: slice arrays, index them by a NumPy draw, or iterate a tf.data.Dataset"
    given = ((v, loop) for loop in loops if not loop.gradient.wrapped for v in _given(loop))
    opaque = dict.fromkeys(v for v, loop in given if _is_opaque(origins, losses, v, loop))
    return [Problem("TFDP010", v, reason, next_step) for v in opaque]


def _weighted(origins: Origins, losses: Losses, loops: Iterable[TrainingLoop]) -> list[Problem]:
    """Weights for `train_on_batch` that are made of the batch as a whole, of which a worker has a part."""
    reason = "these weights are made of the batch, and each worker would make them of its own part"
    next_step = "make them once, of all the data, before training"
    found: list[cst.BaseExpression] = []
    for call in dict.fromkeys(loop.gradient.call for loop in loops if loop.gradient.fed):
        of_classes, of_examples = argument(call, "class_weight", 3), argument(call, "sample_weight", 2)
        if of_classes is not None and _reads_rows(origins, losses, of_classes.value):
            found.append(of_classes.value)
        if of_examples is not None:
            calls = [n for n in parts(origins, of_examples.value) if isinstance(n, cst.Call) and _unseen(origins, n)]
            found += [c for c in calls if any(_reads_rows(origins, losses, a.value) for a in c.args)]
    return [Problem("TFDP090", value, reason, next_step) for value in found]


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
    """Whether random numbers say what a call gives: those are sharded themselves."""
    calls = [n for n in parts(origins, made) if isinstance(n, cst.Call)]
    return any(numpy_draw(origins, c) is not None or origins.kind(c.func) is Kind.DRAW for c in calls)


def _unseen(origins: Origins, call: cst.Call) -> bool:
    followed = origins.function(call.func) is not None or origins.constructed(call) is not None
    return not (followed or origins.called(call).startswith(_COMPUTES) or method(call) in CHANGES_ARRAY)


def _reads_rows(origins: Origins, losses: Losses, value: cst.BaseExpression) -> bool:
    """Whether a value, as it is written and bound, is made of rows of a batch; functions are not looked into."""

    def read(node: cst.CSTNode) -> list[cst.CSTNode]:
        bound = reaching(origins.index, node) if isinstance(node, cst.Name) else ()
        return [*node.children, *(d.value for d in bound if d.kind == "assign" and d.value is not None)]

    found = closure(list[cst.CSTNode]([value]), read)
    return any(isinstance(n, cst.Name | cst.Subscript) and _is_rows(losses, n) for n in found)


def _is_rows(losses: Losses, node: cst.BaseExpression) -> bool:
    found = losses.value(node)
    return found.reduction is Reduction.PER_EXAMPLE and not found.guessed
