"""Learning-rate schedules: which of their numbers count steps, and whose steps those are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ...catalogue import SCHEDULES
from ..apis import ASSIGNS, PUTS_IN
from ..program import Origins, Problem, body_functions, method, nodes, within
from ..rates import makes_schedule
from .counts import Extent, StepCount, StepCounts

_SHRINKS = "this schedule may count steps by a number that shrinks with a share"
_NEXT = "write the numbers of steps of the one-process script as plain numbers"
_LIBRARIES = ("builtins.", "tensorflow.", "math.", "numpy.")
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
        parents = self._origins.index.parents
        for call in dict.fromkeys(schedules):
            owner = self._origins.constructed(call)
            if self._origins.called(parents[parents[call]]) == "tfdp.runtime.local_schedule":
                continue
            if any(a.star for a in call.args):
                name = cst.Module([]).code_for_node(call.func)
                found.append(_uncertain(call, f"the arguments of {name} come from a starred expression"))
            elif owner is None:
                found += self._of_keras(call)
            else:
                found += self._of_own(call, owner)
        return tuple(dict.fromkeys(found))

    def _of_keras(self, call: cst.Call) -> Iterator[StepCount | Problem]:
        name = self._origins.called(call).rpartition(".")[2]
        if name not in SCHEDULES:
            yield _uncertain(call, "cannot tell which schedule is taken out of a table here, and so how long it is")
            return
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
                yield _uncertain(arg.value, _SHRINKS)

    def _read(self, owner: cst.ClassDef) -> Iterator[Problem]:
        """Numbers that the class takes from around it."""
        index, defines = self._origins.index, (cst.Param, cst.ClassDef, cst.FunctionDef)
        for node in nodes(owner.body):
            if not isinstance(node, cst.Name) or node not in index.names[node.value] or self._origins.names.api(node):
                continue
            outside = [o.node for o in self._origins.of(node) if not within(index, o.node, owner)]
            made = [n for n in outside if not isinstance(n, defines) and not self._is_argument(n)]
            if made and self._steps.extent(node) is not Extent.WHOLE and not self._is_no_count(node):
                yield _uncertain(node, _SHRINKS)

    def _is_argument(self, value: cst.CSTNode) -> bool:
        """Whether a value comes in through a call that makes the schedule: that call is asked itself."""
        calls = [c for c in self._origins.index.calls if self._origins.constructed(c) is not None]
        given = [a.value for c in calls for a in c.args]
        return any(o.node is value for g in given for o in self._origins.of(g))

    def _put(self, owner: cst.ClassDef) -> Iterator[Problem]:
        """Numbers that are put into a schedule from outside."""
        for target, value, path in (s for stores in self._origins.index.attribute_stores.values() for s in stores):
            outside = not within(self._origins.index, target, owner)
            put = outside and self._origins.class_of(target.value) is owner
            if put and (path or self._steps.extent(value) is not Extent.WHOLE):
                yield _uncertain(target, _SHRINKS)

    def _kept(self, owner: cst.ClassDef) -> Iterator[Problem]:
        """State that a schedule changes when it is called: it counts calls, not steps."""
        reason = "this schedule changes something each time it is called, which counts calls, not steps"
        methods = (f for f in body_functions(owner) if f.name.value != "__init__")
        for node in (n for function in methods for n in nodes(function.body)):
            target = node.target if isinstance(node, cst.AugAssign | cst.AssignTarget) else None
            state = method(node) in PUTS_IN | ASSIGNS | {"pop"} and not self._origins.called(node)
            if isinstance(target, cst.Attribute | cst.Subscript) or state:
                yield Problem("TFDP011", node, reason, "compute the rate from the argument `step` alone")

    def _is_no_count(self, node: cst.BaseExpression) -> bool:
        """Whether a value is a text, None or the like, or a number in which no dataset has part."""
        found = self._origins.of(node)
        libraries = ((self._origins.names.api(o.node) or "").startswith(_LIBRARIES) for o in found)
        plain = all(isinstance(o.node, _PLAIN) or known for o, known in zip(found, libraries, strict=True))
        return (bool(found) and plain) or self._steps.independent(node)


def _uncertain(node: cst.CSTNode, reason: str) -> Problem:
    return Problem("TFDP011", node, reason, _NEXT)
