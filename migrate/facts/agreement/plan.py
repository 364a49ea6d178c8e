"""What makes decisions equal on all ranks (SEMANTICS.md 6): metrics over all examples, averages, rank 0's answer.

A decision is left alone where it shows and saves only: rank 0 alone does that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property

import libcst as cst

from ...outputs import EffectKind
from ..apis import CALLS_IT, RANKS
from ..data import Datasets
from ..keras import Hooks
from ..outputs import Changing, Effect, Leaves, Presence, Writers, repeated
from ..program import (
    Definition,
    Later,
    Origins,
    Problem,
    StepNumbers,
    changed_by,
    exits_before,
    leading,
    nodes,
    reaching,
    tests_around,
    within,
)
from ..sameness import BY_CHANCE, Mark, Marks, Sameness
from ..training import Loops, TrainingLoop, loop_exits
from .linear import Linear
from .metrics import Metrics, Seen

_CHANCE = frozenset({Mark.CHANCE})
_NUMBERS = (cst.BaseNumber, cst.BaseString, cst.Name, cst.Attribute, cst.BinaryOperation, cst.UnaryOperation)
_KEPT = frozenset({EffectKind.PRINT, EffectKind.SHOW, EffectKind.SAVE})  # what rank 0 alone does
_ENDS = (cst.Raise, cst.Pass, cst.Assert)


class Agreement:
    """The plan: which results are summed, which values averaged, which questions are rank 0's."""

    def __init__(
        self,
        origins: Origins,
        datasets: Datasets,
        loops: tuple[TrainingLoop, ...],
        finder: Loops,
        sharded: Collection[cst.CSTNode],
        *,
        fits: Collection[cst.CSTNode] = (),
        sameness: Sameness | None = None,
    ) -> None:
        """`fits` are calls of Keras' fit, or others that train: all ranks make them together. `sameness` is given where
        all ranks have the same data: then nothing has to be averaged."""
        self._origins, self._index, self._loops, self._fits = origins, origins.index, loops, fits
        self._metrics = Metrics(origins, datasets, loops, finder, sharded, adds_up=self._adds_up)
        self._sameness = sameness or self._of_shares(datasets, sharded)
        self._linear = Linear(origins, self._sameness)
        self._writers = Writers(origins)
        self._presence = Presence(origins, self._writers)
        self._changing = Changing(origins, self._writers, self._presence, lambda _: False)
        self._region = repeated(origins, loops, () if sameness is None else _around(origins, fits))
        self._steps = StepNumbers(origins, [loop.loop for loop in loops])
        self._reached: set[cst.CSTNode] = set()  # tests that all ranks come to, if they come to those asked about now
        self._come_to: set[cst.CSTNode] = set()  # tests that all ranks come to
        tests = [n for n in origins.index.order if isinstance(n, cst.If | cst.While)] if loops or fits else []
        self._tests = [n for n in tests if not self._asks_rank(n.test)]
        self.results: tuple[cst.Call, ...] = ()
        self.averages: dict[cst.BaseExpression, None] = {}
        if sameness is None:
            self._plan()

    def _of_shares(self, datasets: Datasets, sharded: Collection[cst.CSTNode]) -> Sameness:
        """Answers where each rank has its share of the records."""
        hooks = Hooks(self._origins)
        shared, own = hooks.shared(), hooks.own()
        return Sameness(self._origins, datasets, self._loops, sharded, metric=self._of_metric, shared=shared, own=own)

    @cached_property
    def sameness(self) -> Sameness:
        """Answers for values, with all that is made equal by this plan."""
        return self._sameness.after(self._settled)

    @property
    def collectives(self) -> frozenset[cst.CSTNode]:
        """Expressions that become collective calls, whatever is agreed."""
        return frozenset((*self.results, *self.averages))

    def _asks_rank(self, test: cst.BaseExpression) -> bool:
        """Whether the author, or an earlier migration, chooses the rank here."""
        return any(self._origins.called(n) in RANKS for n in nodes(test))

    # --- the plan -----------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        if not self._loops and not self._fits:
            return
        found = [r for call in self._index.methods("result") if (r := self._metrics.result(call)) is not None]
        summed = [r.call for r in found if r.summed]
        self._sameness.equal.update(summed)
        certain = [call for call in summed if self.certain(call)]
        if len(certain) < len(summed):
            self._sameness.equal.difference_update(set(summed) - set(certain))
            self._forget()
            certain = [call for call in certain if self.certain(call)]
        self.results = tuple(certain)
        for _ in range(4):  # a best value is averaged after the value that it is compared with
            before = len(self.averages)
            for statement in self._tests:
                self._average(statement)
            if len(self.averages) == before:
                break

    @cached_property
    def _settled(self) -> frozenset[cst.CSTNode]:
        """Tests that are, or are made, the same on all workers."""
        return frozenset(s.test for s in self._tests if self._will_be_equal(s))

    def _will_be_equal(self, statement: cst.If | cst.While) -> bool:
        marks = self._sameness.of(statement.test)
        return not marks or (self._by_chance(statement) and self._may_ask(statement))

    def _forget(self) -> None:
        self._sameness.forget()
        self._linear.forget()
        self._come_to.clear()

    def _of_metric(self, call: cst.Call) -> Marks | None:
        result = self._metrics.result(call)
        if result is None:
            return None
        return _CHANCE if result.seen is Seen.WHOLE else frozenset({Mark.LOCAL})

    def _adds_up(self, value: cst.BaseExpression) -> bool:
        """Whether a value is one for each example, a mean or a sum of such, or equal on all workers."""
        return self._linear.adds_up(value)

    def _average(self, statement: cst.If | cst.While) -> None:
        """Average the values of this worker's examples that a test compares, where that is exact."""
        if not self._in_region(statement) or not self._worth_it(statement) or not self._may_ask(statement):
            return
        for name in self._local(statement.test):
            for place in self._places(name, statement):
                self.averages[place] = None
                self._sameness.equal.add(place)
                self._forget()

    def _local(self, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
        """The parts of an expression that are made from this worker's examples, the largest first."""
        if Mark.LOCAL not in self._sameness.of(node):
            return
        if isinstance(node, cst.Name | cst.Attribute | cst.Call):
            yield node
        if node in self._sameness.equal or _asks_identity(node):
            return
        named = node.target if isinstance(node, cst.NamedExpr | cst.CompFor) else None
        for child in node.children:
            if child is not named and not isinstance(child, cst.Parameters):
                yield from self._local(child)

    def _places(self, name: cst.BaseExpression, statement: cst.If | cst.While) -> Iterator[cst.BaseExpression]:
        """Where a value is averaged: at its definition, or where it is asked if that comes less often."""
        around = len(self._index.loops_around(statement))
        definitions = reaching(self._index, name) if isinstance(name, cst.Name) else []
        for definition in definitions:
            value = definition.value
            if not isinstance(value, cst.BaseExpression) or definition.kind != "assign" or definition.path:
                continue
            local = Mark.LOCAL in self._sameness.of(value) and not self._linear.is_mean(value)
            seldom = len(self._index.loops_around(definition.statement)) <= around
            if local and seldom and self._linear.of(value) and self.certain(definition.statement):
                yield value
            self._forget()
        for definition in definitions:
            yield from self._given(definition)
        if any(d.kind == "comp" for d in definitions) or not self.certain(name):
            return
        if Mark.LOCAL in self._sameness.of(name) and self._is_whole(name) and self._linear.of(name):
            yield name

    def _given(self, definition: Definition) -> Iterator[cst.BaseExpression]:
        """What is given for a parameter where its function is called."""
        function = definition.scope
        if definition.kind != "param" or not isinstance(function, cst.FunctionDef):
            return
        for call in self._origins.calls_of(function):
            value = self._origins.bind(call, function).get(definition.name)
            if value is None or Mark.LOCAL not in self._sameness.of(value) or self._metrics.in_graph(call):
                continue
            if self._linear.of(value) and self.certain(value):
                yield value
                self._forget()

    def _is_whole(self, name: cst.BaseExpression) -> bool:
        """Whether nothing around it in the test is a part of the same value, as in `float(loss)`."""
        return not isinstance(self._index.parents.get(name), cst.Attribute | cst.Subscript)

    # --- questions ----------------------------------------------------------------------------------------------------

    def certain(self, node: cst.CSTNode, called: tuple[cst.FunctionDef, ...] = ()) -> bool:
        """Whether all ranks reach the node alike, also through the calls that lead to it."""
        if not all(self._around_alike(e) for e in exits_before(node, self._origins)):
            return False
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

    def _around_alike(self, node: cst.CSTNode) -> bool:
        around = map(self._sameness.of, tests_around(node, self._origins))
        return not any(Mark.UNKNOWN in marks and Mark.LOCAL not in marks for marks in around)  # local ones are refused

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
        found = not self._metrics.in_graph(statement) and self.certain(statement)
        if found and not before:
            self._come_to |= self._reached  # they rest on one another, and on nothing that is asked about still
        if not before or not found:
            self._reached = before  # what was found in between may rest on it
        return found

    def may_agree(self, node: cst.CSTNode) -> bool:
        """Whether rank 0's value of an expression can be given to all there."""
        return not self._metrics.in_graph(node) and self.certain(node) and not self._presence.out_of_step(node)

    def _in_region(self, node: cst.CSTNode) -> bool:
        return not self._region.isdisjoint((node, *self._index.ancestors(node)))

    def _worth_it(self, statement: cst.If | cst.While) -> bool:
        """Whether a test decides more than what is shown, or saved at each step."""
        inside = self._inside(statement)
        calls = [s.value for s in inside if isinstance(s, cst.Expr) and isinstance(s.value, cst.Call)]
        kinds = {self._writers.kind(call) for call in calls}
        if len(calls) < len(inside) or not kinds <= _KEPT or any(map(self._changes, calls)):
            return True
        stepping = {loop.loop for loop in self._loops}
        return EffectKind.SAVE in kinds and not any(loop in stepping for loop in self._index.loops_around(statement))

    def _changes(self, call: cst.CSTNode) -> bool:
        """Whether what a call is given changes something when it is computed."""
        return self._changing.of(call.children, set(nodes(call))) is Leaves.CHANGE

    def _inside(self, statement: cst.If | cst.While) -> list[cst.CSTNode]:
        """The statements of the branches; `if` by what is in it, rank 0's own left out."""
        branches = [b for b in (statement.body, statement.orelse) if b is not None]
        return [s for b in branches for s in self._statements(b)]

    def _statements(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        kinds = cst.BaseSmallStatement | cst.With | cst.For | cst.While | cst.Try | cst.FunctionDef | cst.ClassDef
        if isinstance(node, kinds):
            return [node]
        if isinstance(node, cst.If) and self._asks_rank(node.test):
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
        if statement in self._asking and Mark.LOCAL not in marks:
            return bool(marks)  # rank 0 knows as well as any which files there are
        return bool(marks) and marks <= BY_CHANCE

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
            by_rank = any(isinstance(p, cst.If) and self._asks_rank(p.test) for p in (s, *self._index.ancestors(s)))
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
        found: set[cst.CSTNode] = {*self.collectives, *waits, *self._fits}
        asked = {EffectKind.SAVE, EffectKind.FETCH}
        found.update(e.call for e in effects if e.kind is EffectKind.LATEST or (e.guard is None and e.kind in asked))
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

    def problems(self, effects: tuple[Effect, ...]) -> list[Problem]:
        """Decisions from this worker's examples that matter, and that no exact rewrite makes equal."""
        reason = "this decision is taken from values of this worker's examples, and others may decide otherwise"
        next_step = "decide by a Keras metric or a mean over the examples that has a name of its own, or by dp.agree(…)"
        local = [s for s in self._tests if Mark.LOCAL in self._sameness.of(s.test) and s.test not in self._settled]
        again = [s for s in local if self._in_region(s) and not self._metrics.in_graph(s)]
        return [Problem("TFDP053", s.test, reason, next_step) for s in again if self._matters(s, effects)]

    def _matters(self, statement: cst.If | cst.While, effects: tuple[Effect, ...]) -> bool:
        """Whether the branches do more than show, save, and keep numbers that are compared again."""
        guarded = _guarded(effects)
        inside = [s for s in self._inside(statement) if s not in guarded and not isinstance(s, _ENDS)]
        return not self._is_guarded(statement, guarded) and not all(map(self._keeps_a_number, inside))

    def _is_guarded(self, statement: cst.CSTNode, guarded: AbstractSet[cst.CSTNode]) -> bool:
        return not guarded.isdisjoint((statement, *self._index.ancestors(statement)))

    def _keeps_a_number(self, statement: cst.CSTNode) -> bool:
        if not isinstance(statement, cst.Assign | cst.AugAssign):
            return False
        named = all(self._is_named(place) for place in changed_by(statement))
        number = isinstance(statement.value, _NUMBERS) or self._origins.called(statement.value) == "builtins.float"
        return named and number

    def _is_named(self, place: cst.BaseExpression) -> bool:
        return isinstance(place, cst.Name) or (isinstance(place, cst.Attribute) and bool(self._origins.stored(place)))

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


def _asks_identity(node: cst.CSTNode) -> bool:
    """`best is None`: what a value is, and not how large."""
    operators = [c.operator for c in node.comparisons] if isinstance(node, cst.Comparison) else []
    return any(isinstance(o, cst.Is | cst.IsNot) for o in operators)
