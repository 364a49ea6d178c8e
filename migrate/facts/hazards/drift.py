"""What would make the workers' models drift apart: gradients, or variables, that each changes by values of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set

import libcst as cst

from ...catalogue import Kind
from ..apis import ASSIGNS
from ..program import Origins, Problem, Variables, receiver
from ..sameness import Mark, Marks, Sameness
from ..training import Gradient

_WAYS = {
    Mark.DRAWN: ("draws itself", "take rank 0's on all workers, as dp.broadcast(value) gives it"),
    Mark.PROCESS: ("makes for itself", "take rank 0's on all workers, as dp.broadcast_object(value) gives it"),
    Mark.LOCAL: ("makes from its own examples", "average it over the workers first, as dp.allreduce(value) does"),
}


def drifting(
    origins: Origins,
    sameness: Sameness,
    trained: Iterable[Gradient],
    running: Set[cst.CSTNode],
    read: Collection[cst.CSTNode],
) -> list[Problem]:
    """running: the functions and loops of training steps. read: everything that a trained loss is computed from."""
    updates = {u.call: u for g in trained for u in g.updates}
    found = [p for call in updates if (p := _update(call, sameness)) is not None]
    variables = Variables(origins)
    for call in origins.index.methods(*ASSIGNS):
        if call in updates or not call.args or running.isdisjoint(origins.index.ancestors(call)):
            continue
        way = _way(sameness.of(call.args[0].value))
        if way is not None and _is_read(call, origins, variables, read):
            reason = f"a variable that the loss depends on gets a value here that each worker {way[0]}"
            found.append(Problem("TFDP040", call, f"{reason}: their models would drift apart", way[1]))
    return found


def _update(call: cst.Call, sameness: Sameness) -> Problem | None:
    for arg in call.args:
        way = _way(sameness.of(arg.value))
        if way is not None:
            reason = f"the averaged gradients are changed by values that each worker {way[0]}"
            return Problem("TFDP030", call, f"{reason}: their models would drift apart", way[1])
    return None


def _way(marks: Marks) -> tuple[str, str] | None:
    return next((way for mark, way in _WAYS.items() if mark in marks), None)


def _is_read(call: cst.Call, origins: Origins, variables: Variables, read: Collection[cst.CSTNode]) -> bool:
    """Whether the variable may be a model's, or is one that the loss is computed from."""
    variable = owner = receiver(call)
    if any(o.node in read for o in origins.of(variable) if isinstance(o.node, cst.Call)):
        return True
    while isinstance(owner, cst.Attribute | cst.Subscript):  # `model.layers[0].kernel`
        owner = owner.value
        if Kind.MODEL in origins.kinds(owner):
            return True
    return variables.made(variable).collected
