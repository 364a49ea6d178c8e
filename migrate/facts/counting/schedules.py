"""Learning-rate schedules: which of their numbers count steps, and whose steps those are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ...catalogue import SCHEDULES
from ..program import Origins, Problem, nodes, within
from ..rates import makes_schedule
from .counts import Extent, StepCount, StepCounts

_STATE = frozenset({"assign", "assign_add", "assign_sub", "append", "pop", "update"})
_NEXT = "write the numbers of steps of the one-process script as plain numbers"
_PLAIN = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString, cst.FunctionDef, cst.ClassDef, cst.Lambda)


@dataclass(frozen=True)
class OwnSchedule:
    """A schedule of the file's own class: it is to see the one-process script's steps.

    `shares` are the numbers it is given that shrink with a worker's share, and have to be the one-process script's too.
    """

    call: cst.Call
    shares: tuple[cst.BaseExpression, ...]


class Schedules:
    """Answers for the schedules that are learning rates."""

    def __init__(self, origins: Origins, steps: StepCounts) -> None:
        self._origins, self._steps = origins, steps

    def of(self, schedules: Iterable[cst.Call]) -> tuple[StepCount | OwnSchedule | Problem, ...]:
        """What has to be done to each schedule, so that it is over where the one-process script's is."""
        found: list[StepCount | OwnSchedule | Problem] = []
        for call in dict.fromkeys(schedules):
            owner = self._origins.constructed(call)
            if self._is_local(call):
                continue
            if any(a.star for a in call.args):
                name = cst.Module([]).code_for_node(call.func)
                found.append(_uncertain(call, f"the arguments of {name} come from a starred expression"))
            elif owner is None:
                found += self._of_keras(call)
            else:
                found += self._of_own(call, owner)
        return tuple(dict.fromkeys(found))

    def _is_local(self, call: cst.Call) -> bool:
        around = self._origins.index.parents[self._origins.index.parents[call]]
        return isinstance(around, cst.Call) and self._origins.names.api(around.func) == "tfdp.runtime.local_schedule"

    def _of_keras(self, call: cst.Call) -> Iterator[StepCount | Problem]:
        name = (self._origins.names.api(call.func) or "").rpartition(".")[2]
        for keyword, position in SCHEDULES[name]:
            if (found := self._steps.count(call, keyword, position, name)) is not None:
                yield found

    # --- the file's own -----------------------------------------------------------------------------------------------

    def _of_own(self, call: cst.Call, owner: cst.ClassDef) -> list[OwnSchedule | Problem]:
        found = list(dict.fromkeys([*self._given(call), *self._read(owner), *self._put(owner), *self._kept(owner)]))
        problems = [f for f in found if isinstance(f, Problem)]
        shares = tuple(f for f in found if not isinstance(f, Problem))
        return [*problems] or [OwnSchedule(call, shares)]

    def _given(self, call: cst.Call, around: tuple[cst.Call, ...] = ()) -> Iterator[cst.BaseExpression | Problem]:
        """Arguments that shrink with a worker's share, also those of a schedule that is itself an argument."""
        for arg in call.args:
            inner = [o.node for o in self._origins.of(arg.value) if makes_schedule(self._origins, o.node)]
            for schedule in inner:
                assert isinstance(schedule, cst.Call)
                yield from self._given(schedule, (*around, call)) if schedule not in around else ()
            if inner:
                continue
            extent = self._steps.extent(arg.value)
            if extent is Extent.SHARE:
                yield arg.value
            elif arg.star or (extent is not Extent.WHOLE and not self._is_no_count(arg.value)):
                yield _uncertain(arg.value, "this schedule may count steps by a number that shrinks with a share")

    def _read(self, owner: cst.ClassDef) -> Iterator[Problem]:
        """Numbers that the class takes from around it."""
        for node in nodes(owner.body):
            if not isinstance(node, cst.Name) or node not in self._origins.index.names[node.value]:
                continue
            if self._origins.names.api(node) is not None:
                continue
            outside = [o.node for o in self._origins.of(node) if not within(self._origins.index, o.node, owner)]
            outside = [n for n in outside if not isinstance(n, cst.Param | cst.ClassDef | cst.FunctionDef)]
            made = [n for n in outside if not self._is_argument(n, owner)]
            if made and self._steps.extent(node) is not Extent.WHOLE and not self._is_no_count(node):
                yield _uncertain(node, "this schedule may count steps by a number that shrinks with a share")

    def _is_argument(self, value: cst.CSTNode, owner: cst.ClassDef) -> bool:
        """Whether a value comes in through a call that makes the schedule: that call is asked itself."""
        calls = [c for c in self._origins.index.calls if self._origins.constructed(c) is not None]
        given = [a.value for c in calls for a in c.args]
        known = {o.node for g in given for o in self._origins.of(g)}
        return value in known and not within(self._origins.index, value, owner)

    def _put(self, owner: cst.ClassDef) -> Iterator[Problem]:
        """Numbers that are put into a schedule from outside."""
        for stores in self._origins.index.attribute_stores.values():
            for target, value, path in stores:
                outside = not within(self._origins.index, target, owner)
                put = outside and self._origins.class_of(target.value) is owner
                if put and (path or self._steps.extent(value) is not Extent.WHOLE):
                    yield _uncertain(target, "this schedule may count steps by a number that shrinks with a share")

    def _kept(self, owner: cst.ClassDef) -> Iterator[Problem]:
        """State that a schedule changes when it is called: it counts calls, not steps."""
        for function in owner.body.body:
            if not isinstance(function, cst.FunctionDef) or function.name.value == "__init__":
                continue
            for node in nodes(function.body):
                target = node.target if isinstance(node, cst.AugAssign | cst.AssignTarget) else None
                called = node.func if isinstance(node, cst.Call) else None
                changes = isinstance(called, cst.Attribute) and called.attr.value in _STATE
                if isinstance(target, cst.Attribute | cst.Subscript) or changes:
                    reason = "this schedule changes something each time it is called, which counts calls, not steps"
                    yield Problem("TFDP011", node, reason, "compute the rate from the argument `step` alone")

    def _is_no_count(self, node: cst.BaseExpression) -> bool:
        """Whether a value is a text, None or the like, or a number in which no dataset has part."""
        found = self._origins.of(node)
        if found and all(isinstance(o.node, _PLAIN) or self._is_constant(o.node) for o in found):
            return True
        return self._steps.independent(node)

    def _is_constant(self, node: cst.CSTNode) -> bool:
        api = self._origins.names.api(node) or ""
        return api.startswith(("builtins.", "tensorflow.", "math.", "numpy."))


def _uncertain(node: cst.CSTNode, reason: str) -> Problem:
    return Problem("TFDP011", node, reason, _NEXT)
