"""What makes decisions equal on all ranks (SEMANTICS.md 6): rank 0's answer to what each process finds for itself.

A decision is left alone where it shows and saves only: rank 0 alone does that. Values are alike on all ranks
but for what each process makes for itself: clocks, the system's chance, which files there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property

import libcst as cst

from ...outputs import EffectKind
from ..apis import CALLS_IT, RANKS
from ..outputs import Changing, Effect, Presence, Writers, repeated
from ..program import (
    Later,
    Origins,
    Problem,
    StepNumbers,
    leading,
    nodes,
    reaching,
    tests_around,
    within,
)
from ..sameness import BY_CHANCE, Sameness
from ..training import Loops, TrainingLoop, loop_exits
from .metrics import Metrics

_ENDS = (cst.Raise, cst.Pass, cst.Assert)


class Agreement:
    """The plan: which metrics are summed, which questions are rank 0's."""

    def __init__(
        self,
        origins: Origins,
        loops: tuple[TrainingLoop, ...],
        finder: Loops,
        *,
        sameness: Sameness,
        fits: Collection[cst.CSTNode] = (),
        metrics: Metrics | None = None,
    ) -> None:
        """`fits` are calls of Keras' fit, or others that train: all ranks make them together. `metrics` are given where
        each rank has its share of the records."""
        self._origins, self._index, self._loops, self._fits = origins, origins.index, loops, fits
        self._finder, self._metrics, self._sameness = finder, metrics, sameness
        self._writers = Writers(origins)
        self._presence = Presence(origins, self._writers)
        self._changing = Changing(origins, self._writers, self._presence, lambda _: False)
        self._region = repeated(origins, loops, _around(origins, fits))
        self._steps = StepNumbers(origins, [loop.loop for loop in loops])
        self._reached: set[cst.CSTNode] = set()  # tests that all ranks come to, if they come to those asked about now
        self._come_to: set[cst.CSTNode] = set()  # tests that all ranks come to
        tests = [n for n in origins.index.order if isinstance(n, cst.If | cst.While)] if loops or fits else []
        self._tests = [n for n in tests if not any(map(self._is_for_a_rank, (n, *origins.index.ancestors(n))))]

    @cached_property
    def sameness(self) -> Sameness:
        """Answers for values, with all that is made equal by this plan."""
        return self._sameness.after({s.test for s in self._tests if self._will_be_equal(s)})

    @cached_property
    def results(self) -> tuple[cst.Call, ...]:
        """Results of metrics that each rank has of its own examples, and that are to be those of all."""
        metrics = self._metrics
        if metrics is None or not (self._loops or self._fits):
            return ()
        found = (metrics.result(call) for call in self._index.methods("result"))
        return tuple(r.call for r in found if r is not None and r.summed and self.certain(r.call))

    def _is_for_a_rank(self, node: cst.CSTNode) -> bool:
        """Whether the author, or an earlier migration, chooses the rank here."""
        return isinstance(node, cst.If | cst.While) and any(self._origins.called(n) in RANKS for n in nodes(node.test))

    def _will_be_equal(self, statement: cst.If | cst.While) -> bool:
        marks = self._sameness.of(statement.test)
        return not marks or (self._by_chance(statement) and self._may_ask(statement))

    # --- questions ----------------------------------------------------------------------------------------------------

    def certain(self, node: cst.CSTNode, called: tuple[cst.FunctionDef, ...] = ()) -> bool:
        """Whether all ranks reach the node alike, also through the calls that lead to it."""
        child = node
        for parent in self._index.ancestors(node):
            if isinstance(parent, cst.ExceptHandler | cst.Lambda):
                return False
            if isinstance(parent, cst.If | cst.While) and child is not parent.test and not self._will_be_equal(parent):
                return False
            if isinstance(parent, cst.IfExp) and child is not parent.test and self._sameness.of(parent.test):
                return False
            if isinstance(parent, cst.Match) and child is not parent.subject and self._sameness.of(parent.subject):
                return False
            if isinstance(parent, cst.BooleanOperation) and child is parent.right and self._sameness.of(parent.left):
                return False
            if isinstance(parent, cst.BaseComp) and child is not parent.for_in and self._chooses(parent):
                return False
            if isinstance(parent, cst.FunctionDef):
                if child is not parent.body or parent in called:  # a call of itself, by ranks that are alike in it
                    return True
                return len(called) < 8 and self._called_alike(parent, (*called, parent))
            child = parent
        return True

    def _called_alike(self, function: cst.FunctionDef, called: tuple[cst.FunctionDef, ...]) -> bool:
        for use in self._index.names.get(function.name.value, ()):
            given = self._index.parents[use]
            handed_on = isinstance(given, cst.Arg) and self._origins.called(self._index.parents[given]) not in CALLS_IT
            if handed_on and any(d.value is function for d in reaching(self._index, use)):
                return False
        return all(self.certain(c, called) for c in self._origins.calls_of(function))

    def _chooses(self, comprehension: cst.BaseComp) -> bool:
        """Whether an element may be asked for on some ranks alone."""
        if isinstance(comprehension, cst.GeneratorExp):  # as `any` and `next` do
            return True
        inner = [n for n in nodes(comprehension.for_in) if isinstance(n, cst.CompFor)]
        chosen = any(self._sameness.of(test.test) for each in inner for test in each.ifs)
        return chosen or any(self._sameness.length(each.iter) for each in inner)

    def _may_ask(self, statement: cst.If | cst.While) -> bool:
        """Whether all ranks come to the test, outside any graph, so that rank 0's answer can be given to all."""
        if statement in self._come_to or statement in self._reached:
            return True  # on the way to itself: each time by what rank 0 has answered the time before
        before = set(self._reached)
        self._reached.add(statement)
        found = not self._finder.is_compiled(statement) and self.certain(statement)
        if found and not before:
            self._come_to |= self._reached  # they rest on one another, and on nothing that is asked about still
        if not before or not found:
            self._reached = before  # what was found in between may rest on it
        return found

    def may_agree(self, node: cst.CSTNode) -> bool:
        """Whether rank 0's value of an expression can be given to all there."""
        return not self._finder.is_compiled(node) and self.certain(node) and not self._presence.out_of_step(node)

    def _in_region(self, node: cst.CSTNode) -> bool:
        return not self._region.isdisjoint((node, *self._index.ancestors(node)))

    def _inside(self, statement: cst.If | cst.While) -> list[cst.CSTNode]:
        """The statements of the branches; `if` by what is in it, rank 0's own left out."""
        branches = [b for b in (statement.body, statement.orelse) if b is not None]
        return [s for b in branches for s in self._statements(b)]

    def _statements(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        kinds = cst.BaseSmallStatement | cst.With | cst.For | cst.While | cst.Try | cst.FunctionDef | cst.ClassDef
        if isinstance(node, kinds):
            return [node]
        if isinstance(node, cst.If) and self._is_for_a_rank(node):
            return []
        skipped = node.test if isinstance(node, cst.If) else None
        return [s for child in node.children if child is not skipped for s in self._statements(child)]

    # --- decisions ----------------------------------------------------------------------------------------------------

    def agreed(self, effects: tuple[Effect, ...], waits: tuple[cst.CSTNode, ...]) -> tuple[cst.BaseExpression, ...]:
        """Tests whose answer has to be rank 0's."""
        return tuple(s.test for s in self._deciding(effects, waits) if self._may_ask(s))

    def deciding(self, effects: tuple[Effect, ...], waits: tuple[cst.CSTNode, ...]) -> tuple[cst.BaseExpression, ...]:
        """Tests by chance that decide what all ranks do, also those of which rank 0 cannot be asked there."""
        return tuple(s.test for s in self._deciding(effects, waits))

    def _deciding(self, effects: tuple[Effect, ...], waits: tuple[cst.CSTNode, ...]) -> Iterator[cst.If | cst.While]:
        shared = self._shared(effects, waits)
        return (s for s in self._tests if self._by_chance(s) and self._decides(s, effects, shared))

    def _by_chance(self, statement: cst.If | cst.While) -> bool:
        marks = self._sameness.of(statement.test)
        return bool(marks) and (statement in self._asking or marks <= BY_CHANCE)  # rank 0 knows which files there are

    @cached_property
    def _asking(self) -> frozenset[cst.CSTNode]:
        return frozenset(s for s in self._presence.statements if not self._presence.out_of_step(s))

    def asked_apart(self, effects: tuple[Effect, ...]) -> list[Problem]:
        """Questions about files whose answer the script changes, and that cannot be rank 0's."""
        if not self._loops and not self._fits:
            return []
        guarded = _guarded(effects)
        apart = []
        for s in self._presence.statements:
            by_rank = any(map(self._is_for_a_rank, (s, *self._index.ancestors(s))))
            own = not self._sameness.of(s.test) or by_rank or self._is_guarded(s, guarded)
            agreed = s in self._asking and self._by_chance(s) and self._may_ask(s)
            if not own and not agreed and not guarded.issuperset(self._inside(s)):
                apart.append(s.test)
        apart += [c.test for c in self._presence.choices if self._sameness.of(c.test)]
        reason = "what is written depends on which files there are, and each worker may find others"
        next_step = "prepare the files before training, or ask with dp.agree(…) where all workers come together"
        return [Problem("TFDP050", test, reason, next_step) for test in apart]

    def _shared(self, effects: tuple[Effect, ...], waits: tuple[cst.CSTNode, ...]) -> set[cst.CSTNode]:
        """What all ranks must do together, and the calls that lead to it."""
        found: set[cst.CSTNode] = {*self.results, *waits, *self._fits}
        asked = {EffectKind.SAVE, EffectKind.FETCH}
        together = (
            e for e in effects if e.decides or e.kind is EffectKind.LATEST or (e.guard is None and e.kind in asked)
        )
        found.update(e.call for e in together)
        found.update(node for loop in self._loops for node in (loop.loop, *loop.calls))
        return set(leading(self._origins, found))

    def _decides(self, statement: cst.If | cst.While, effects: tuple[Effect, ...], shared: set[cst.CSTNode]) -> bool:
        guarded = _guarded(effects)
        if self._is_guarded(statement, guarded):
            return False
        inside, repeats = self._inside(statement), self._in_region(statement)
        if statement in self._asking or (repeats and isinstance(statement, cst.While)):
            return True
        does = any(s not in guarded and not isinstance(s, _ENDS) for s in inside)
        return does if repeats else any(n in shared for s in inside for n in nodes(s))

    def _is_guarded(self, statement: cst.CSTNode, guarded: AbstractSet[cst.CSTNode]) -> bool:
        return not guarded.isdisjoint((statement, *self._index.ancestors(statement)))

    def equal_ends(self, loop: TrainingLoop) -> set[cst.CSTNode]:
        """The `break`s, `return`s and `while`s of a training loop to whose end all ranks come, by no step count."""
        whiles = [o for o in (loop.loop, *loop.outer) if isinstance(o, cst.While)]
        places = [*((e, e) for e in loop_exits(loop)), *((o, o.body) for o in whiles)]
        return {end for end, place in places if self._ends_alike(place)}

    def _ends_alike(self, node: cst.CSTNode) -> bool:
        innermost = self._index.loops_around(node)[:1]
        around = tests_around(node, self._origins)
        tests = [t for t in around if all(within(self._index, t, loop) for loop in innermost)]
        equal = bool(tests) and not self.sameness.all(tests)
        return equal and self.certain(node) and Later.COUNT not in self._steps.all(tests)


def _around(origins: Origins, calls: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    """The loops around calls, and around those of their functions."""
    return [loop for way in leading(origins, calls) for loop in origins.index.loops_around(way)]


def _guarded(effects: Iterable[Effect]) -> set[cst.CSTNode]:
    """What rank 0 alone will do."""
    return {e.guard for e in effects if e.guard is not None and not e.shared}
