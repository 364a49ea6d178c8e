"""What else than the examples of its batch reaches a training step, and is each worker's own.

A number that is kept from one step for the next, or made before training: every worker makes it of its own examples,
and the average of what they compute by it is not what one process computes. Values of each example are no such number:
a worker's rows stand at the same places in all batches. What a step makes of its own batch is asked of its loss.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ..apis import ASSIGNS
from ..losses import Losses, Reduction
from ..program import (
    ITER,
    Addition,
    Definition,
    Origins,
    Problem,
    Unknown,
    additions,
    attribute_additions,
    backward,
    from_before,
    leading,
    method,
    reaching,
    tests_around,
    uses,
    ways_back,
    ways_into,
    within,
)
from ..sameness import SAME, Mark, Marks, Sameness
from ..training import TrainingLoop
from .causes import because

_REASON = (
    "each worker makes this from its own examples and trains by it, and the average is not what one process computes"
)
_DECISION = "each worker decides by its own examples what its training step computes: one process would decide by all"
_NEXT = "average it over the workers first, as dp.average_value(value) does"


class Inputs:
    """Looks at every name and attribute that a step reads."""

    def __init__(self, origins: Origins, sameness: Sameness, losses: Losses, loops: Iterable[TrainingLoop]) -> None:
        self._origins, self._index, self._losses = origins, origins.index, losses
        made = (c for c in self._index.calls if origins.below(origins.constructed(c), ("keras.", "tensorflow.")))
        self._sameness = sameness.after(list(made))  # what changes their variables is asked elsewhere
        loops = tuple(loops)
        ways = leading(origins, [call for loop in loops for call in loop.calls])
        self._repeats = {around for way in ways for around in self._index.loops_around(way)}
        self._turns = {loop.loop for loop in loops}  # those of which each turn has a batch of its own
        self._passes = set(leading(origins, self._turns))  # and the calls that lead to them

    def problems(self, read: Collection[cst.CSTNode]) -> list[Problem]:
        """read: everything that a trained loss is computed from."""
        ordered = sorted((n for n in read if n in self._index.order), key=self._index.order.__getitem__)
        found: dict[cst.CSTNode, cst.CSTNode] = {}
        for node in ordered:
            for made in self._made_before(node):
                found.setdefault(made, node)
        asked = dict.fromkeys(test for node in ordered for test in self._decided_by(node))
        tests = [test for test in asked if not any(within(self._index, test, made) for made in found)]
        first = [made for made in found if not self._follows(made, found)]
        return [*(self._decision(test) for test in tests), *(self._problem(made, found[made]) for made in first)]

    def _follows(self, made: cst.CSTNode, others: Iterable[cst.CSTNode]) -> bool:
        """Whether a value is a part of what another one is made of, which is named instead."""
        below = backward(self._origins, [made])
        above = (backward(self._origins, [each]) for each in others if each is not made and each not in below)
        return any(made in each for each in above)

    def _problem(self, made: cst.CSTNode, read: cst.CSTNode) -> Problem:
        why = Unknown(read, "is read by the training step", because(self._origins, self._sameness, made))
        return Problem.since(self._index, "TFDP053", made, _REASON, why, _NEXT)

    # --- decisions ----------------------------------------------------------------------------------------------------

    def _decision(self, test: cst.CSTNode) -> Problem:
        why = because(self._origins, self._sameness, test)
        return Problem.since(self._index, "TFDP053", test, _DECISION, why, _NEXT)

    def _decided_by(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What decides, by this worker's examples, that a step computes with one value and not with another."""
        tests: list[cst.CSTNode] = []
        if isinstance(node, cst.IfExp):
            tests.append(node.test)
        elif isinstance(node, cst.Name):
            found = reaching(self._index, node)
            for definition in found if len(found) > 1 else ():
                if definition.kind not in {"assign", "other"}:
                    continue
                tests += tests_around(definition.statement, self._origins)
                yield from itertools.islice(self._sameness.raising(definition.statement), 1)
        elif isinstance(node, cst.Call) and (function := self._origins.function(node.func)) is not None:
            for place in ways_back(function, self._origins):
                tests += tests_around(place, self._origins)
                yield from itertools.islice(self._sameness.raising(place), 1)
        for test in tests:
            holder = self._index.parents[test]
            if isinstance(holder, cst.If | cst.IfExp | cst.Match) and Mark.LOCAL in self._sameness.of(test):
                yield test

    # --- what is kept -------------------------------------------------------------------------------------------------

    def _made_before(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The values of this worker's examples that a node may have kept from before the present step."""
        if isinstance(node, cst.Name):
            for definition in reaching(self._index, node):
                if not self._asked_by_part(node, definition):
                    yield from self._of_binding(node, definition)
        elif isinstance(node, cst.Attribute) and not self._index.is_target(node):
            yield from self._of_attribute(node)

    def _asked_by_part(self, read: cst.Name, definition: Definition) -> bool:
        """Whether a name stands for an object of a class of the file: what is read of it is asked attribute by
        attribute."""
        made, holder = self._origins.bound(definition), self._index.parents.get(read)
        if not made or any(o.path or self._origins.constructed(o.node) is None for o in made):
            return False
        if isinstance(holder, cst.Arg):
            call = self._index.parents[holder]
            return isinstance(call, cst.Call) and self._origins.function(call.func) is not None
        return isinstance(holder, cst.Attribute | cst.Call)

    def _of_binding(self, read: cst.Name, definition: Definition) -> Iterator[cst.CSTNode]:
        if definition.kind == "param":
            grown = (a.place for a in additions(self._origins, [definition]) if self._is_own(a))
            yield from (place for place in grown if self._stale(read, place))
        if definition.kind not in {"assign", "other", "for", "with"} or definition.value is None:
            return
        outside = self._index.scope_of(definition.statement) is not definition.scope  # by `global`
        if not (self._stale(read, definition.statement) if outside else self._kept(read, definition)):
            return
        marks = self._sameness.definition(definition)
        if self._differs(marks, definition.value) and not self._is_rows(definition.value):
            yield definition.value
        for addition in additions(self._origins, [definition]):
            if self._is_own(addition):
                yield addition.place
        if Mark.UNKNOWN in marks:
            yield from self._handed_to(definition)

    def _differs(self, marks: Marks, made: cst.CSTNode) -> bool:
        """Whether a value is this worker's own; what is not understood may be, where it is made in training."""
        return Mark.LOCAL in marks or (Mark.UNKNOWN in marks and self._in_training(made))

    def _is_rows(self, made: cst.CSTNode) -> bool:
        """Whether a value is one of each example, whatever worker it is on."""
        if not isinstance(made, cst.BaseExpression) or Mark.LOCAL in self._sameness.reached(made, ()):
            return False
        if isinstance(made, cst.Tuple):
            return all(self._is_rows(element.value) for element in made.elements)
        found = self._losses.value(made)
        return found.reduction is Reduction.PER_EXAMPLE and not (found.guessed or found.mixed)

    def _in_training(self, place: cst.CSTNode) -> bool:
        ways = leading(self._origins, [place])
        return any(loop in self._repeats for way in ways for loop in self._index.loops_around(way))

    def _handed_to(self, definition: Definition) -> Iterator[cst.CSTNode]:
        """What an object that is not understood is told in training: `meter.observe(loss)`."""
        for use in uses(self._index, definition):
            place = self._index.parents[use]
            call = self._index.parents.get(place)
            if not isinstance(call, cst.Call) or not isinstance(place, cst.Attribute) or call.func is not place:
                continue
            given = any(Mark.LOCAL in self._sameness.of(a.value) for a in call.args)
            if given and isinstance(self._index.parents.get(call), cst.Expr) and self._in_training(call):
                yield call

    def _kept(self, read: cst.Name, definition: Definition) -> bool:
        """Whether a binding is from before the present step, at a place in its function that leads to a read."""
        function = self._index.enclosing_function(definition.statement)
        places = (p for p in leading(self._origins, [read]) if self._index.enclosing_function(p) is function)
        return any(self._kept_until(place, definition) for place in places)

    def _kept_until(self, place: cst.CSTNode, definition: Definition) -> bool:
        turn = self._turn(place)
        if turn is None:
            return self._passes_on(place)
        for loop in self._index.loops_around(place):
            before = loop in self._repeats and definition in from_before(self._index, definition.name, place, loop)
            if before and (loop is turn or within(self._index, definition.statement, loop.body)):
                return True
            if loop is turn:
                break
        return False

    def _turn(self, place: cst.CSTNode) -> cst.For | cst.While | None:
        """The innermost loop around a place of which each turn has a batch."""
        return next((loop for loop in self._index.loops_around(place) if loop in self._turns), None)

    def _passes_on(self, place: cst.CSTNode) -> bool:
        """Whether a place gives something to a pass over the data: all that is bound there is from before its steps."""
        return any(n in self._passes for n in (place, *self._index.ancestors(place)) if isinstance(n, cst.Call))

    def _is_own(self, addition: Addition) -> bool:
        """Whether this worker's examples are put in; variables that are assigned are asked about elsewhere."""
        frames = addition.frames
        if method(addition.place) in ASSIGNS or Mark.LOCAL not in self._sameness.added(addition, frames):
            return False
        given = [n for value in addition.values for n in _parts(value)]
        own = [
            v for v in given if Mark.LOCAL in self._sameness.of(v, frames) and not _same_container(v, addition.place)
        ]
        return not own or not all(map(self._is_rows, own))

    # --- attributes ---------------------------------------------------------------------------------------------------

    def _of_attribute(self, read: cst.Attribute) -> Iterator[cst.CSTNode]:
        for value, path in self._stored(read):
            marks = self._sameness.of(self._value(value)) if ITER not in path else SAME
            if self._differs(marks, value) and self._stale(read, value) and not self._is_rows(value):
                yield value
        for addition in attribute_additions(self._origins, read):
            if self._is_own(addition) and self._stale(read, addition.place):
                yield addition.place

    def _stored(self, read: cst.Attribute) -> list[tuple[cst.CSTNode, tuple[int, ...]]]:
        """What is stored in the attribute; where the object's class is not known, in any object's of that kind."""
        known = self._origins.stored(read)
        if known or self._origins.class_of(read.value) is not None:
            return known
        stores = self._index.attribute_stores.get(read.attr.value, ())
        return [(value, path) for target, value, path in stores if self._origins.class_of(target.value) is None]

    def _value(self, stored: cst.CSTNode) -> cst.CSTNode:
        return stored.value if isinstance(stored, cst.AugAssign) else stored

    def _stale(self, read: cst.CSTNode, stored: cst.CSTNode) -> bool:
        """Whether a later step reads what is stored: on some way to the read no store comes before it in a step."""
        stores = list(leading(self._origins, [stored]))
        todo, seen = [read], {read}
        while todo:
            place = todo.pop()
            if self._passes_on(place):
                return True
            if any(self._precedes(store, place) for store in stores):
                continue
            if self._turn(place) is not None:
                return True
            further = [way for way in ways_into(self._origins, place) if way not in seen]
            seen.update(further)
            todo += further
        return False

    def _precedes(self, store: cst.CSTNode, read: cst.CSTNode) -> bool:
        """Whether a store comes before a read in the same turn."""
        index = self._index
        if index.enclosing_function(store) is not index.enclosing_function(read):
            return False
        one, other = index.statement_of(store), index.statement_of(read)
        before = one is not other and index.order[one] < index.order[other]
        return before and self._turn(store) is self._turn(read) and not self._is_left_out(one, other)

    def _is_left_out(self, store: cst.CSTNode, read: cst.CSTNode) -> bool:
        """Whether a branch without an `else` holds the one place, and not the other."""
        around = {read, *self._index.ancestors(read)}
        above = itertools.takewhile(lambda each: each not in around, self._index.ancestors(store))
        return any(isinstance(each, cst.If) and each.orelse is None for each in above)


def _parts(value: cst.CSTNode) -> list[cst.CSTNode]:
    return [e.value for e in value.elements] if isinstance(value, cst.Tuple) else [value]


def _same_container(value: cst.CSTNode, place: cst.CSTNode) -> bool:
    """`kept[i]`, where something is put into `kept`: it is in there already."""
    if not isinstance(value, cst.Subscript) or not isinstance(place, cst.Subscript):
        return False
    return value.value.deep_equals(place.value)
