"""What else than the examples of its batch reaches a training step, and is each worker's own.

A number that is kept from one step for the next, or made before training: every worker makes it of its own examples,
and would train by it another model. What the step itself makes of its batch is asked elsewhere: it is its loss.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ..apis import ASSIGNS
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
    within,
)
from ..sameness import Mark, Sameness
from ..training import TrainingLoop
from .causes import because

_REASON = (
    "each worker makes this from its own examples, and the training step goes by it: each would train another model"
)
_DECISION = "each worker decides by its own examples what the training step computes: each would train another model"
_NEXT = "average it over the workers first, as dp.average_value(value) does"


class Inputs:
    """Looks at every name and attribute that a step reads."""

    def __init__(self, origins: Origins, sameness: Sameness, loops: Iterable[TrainingLoop]) -> None:
        self._origins, self._index = origins, origins.index
        made = (c for c in self._index.calls if origins.below(origins.constructed(c), ("keras.", "tensorflow.")))
        self._sameness = sameness.after(list(made))  # what changes their variables is asked elsewhere
        ways = leading(origins, [call for loop in loops for call in loop.calls])
        self._turns = {around for way in ways for around in self._index.loops_around(way)}

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
            found = [d for d in reaching(self._index, node) if d.kind in {"assign", "other"}]
            for definition in found if len(found) > 1 else ():
                tests += tests_around(definition.statement, self._origins)
                yield from itertools.islice(self._sameness.raising(definition.statement), 1)
        for test in tests:
            holder = self._index.parents[test]
            if isinstance(holder, cst.If | cst.IfExp) and Mark.LOCAL in self._sameness.of(test):
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
        made, holder = definition.value, self._index.parents.get(read)
        if made is None or self._origins.constructed(made) is None:
            return False
        if isinstance(holder, cst.Arg):
            call = self._index.parents[holder]
            return isinstance(call, cst.Call) and self._origins.function(call.func) is not None
        return isinstance(holder, cst.Attribute | cst.Call)

    def _of_binding(self, read: cst.Name, definition: Definition) -> Iterator[cst.CSTNode]:
        if definition.kind not in {"assign", "other"} or definition.value is None or ITER in definition.path:
            return
        if self._index.scope_of(definition.statement) is not definition.scope:  # by `global`
            kept = self._stale(read, definition.statement)
        else:
            kept = any(definition in before for before in self._before(read, definition))
        if not kept:
            return
        if Mark.LOCAL in self._sameness.definition(definition):
            yield definition.value
        for addition in additions(self._origins, read, [definition]):
            if self._is_own(addition):
                yield addition.place

    def _before(self, read: cst.Name, definition: Definition) -> Iterator[list[Definition]]:
        """The bindings from before the present step, at each place in the binding's function that leads to a read."""
        function = self._index.enclosing_function(definition.statement)
        for place in leading(self._origins, [read]):
            if self._index.enclosing_function(place) is function and (turn := self._turn(place)) is not None:
                yield from_before(self._index, definition.name, place, turn)

    def _turn(self, place: cst.CSTNode) -> cst.For | cst.While | None:
        """The innermost loop around a place in which steps are taken."""
        return next((loop for loop in self._index.loops_around(place) if loop in self._turns), None)

    def _is_own(self, addition: Addition) -> bool:
        """Whether this worker's examples are put in; variables that are assigned are asked about elsewhere."""
        if method(addition.place) in ASSIGNS:
            return False
        return Mark.LOCAL in self._sameness.added(addition, ())

    # --- attributes ---------------------------------------------------------------------------------------------------

    def _of_attribute(self, read: cst.Attribute) -> Iterator[cst.CSTNode]:
        for value, path in self._stored(read):
            if ITER not in path and Mark.LOCAL in self._sameness.of(self._value(value)) and self._stale(read, value):
                yield value
        for addition in attribute_additions(self._origins, read.attr.value):
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
        """Whether what is stored is read in a later step: no way through one step comes from the store to the read."""
        turns = False
        stores = list(leading(self._origins, [stored]))
        for place in leading(self._origins, [read]):
            turn = self._turn(place)
            turns = turns or turn is not None
            if any(self._precedes(store, place, turn) for store in stores):
                return False
        return turns

    def _precedes(self, store: cst.CSTNode, read: cst.CSTNode, turn: cst.CSTNode | None) -> bool:
        """Whether a store comes before a read in the same turn."""
        index = self._index
        if index.enclosing_function(store) is not index.enclosing_function(read) or self._turn(store) is not turn:
            return False
        one, other = index.statement_of(store), index.statement_of(read)
        return one is not other and index.order[one] < index.order[other]
