"""What would make the workers' models drift apart: gradients, or variables, that each changes by values of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..apis import CHANGES_VARIABLE, ENDS_FIT, SETS
from ..program import Origins, Problem, Variables, last_name, leading, receiver, tests_around, within
from ..sameness import Mark, Marks, Sameness
from ..training import Gradient, Update
from .causes import because

_WAYS = {
    Mark.DRAWN: ("draws itself", "take rank 0's on all workers, as dp.broadcast(value) gives it"),
    Mark.PROCESS: ("makes for itself", "take rank 0's on all workers, as dp.broadcast_object(value) gives it"),
    Mark.ORDER: ("makes for itself", "take rank 0's on all workers, as dp.broadcast_object(value) gives it"),
    Mark.LOCAL: ("makes from its own examples", "average it over the workers first, as dp.allreduce(value) does"),
}
_DECIDED = (
    "by its own examples each worker decides here what becomes of a variable that is trained, or read by the loss"
)
_AGREE = "decide by a value that all workers share, as dp.allreduce(value) or the logs of an epoch give it"


@dataclass(frozen=True)
class _Change:
    """A place that gives a variable, or all those of a model, values."""

    place: cst.CSTNode
    variable: cst.BaseExpression
    values: tuple[cst.CSTNode, ...]


class Drift:
    """Answers for the updates of a script, and for what changes variables between them.

    running: the functions and loops of training steps. steps: where training is, loops and calls. read: everything that
    a trained loss is computed from. settled: places that are asked about elsewhere, learning rates.
    """

    def __init__(
        self,
        origins: Origins,
        sameness: Sameness,
        *,
        running: Set[cst.CSTNode],
        steps: Iterable[cst.CSTNode],
        read: Collection[cst.CSTNode],
        settled: Collection[cst.CSTNode] = (),
    ) -> None:
        self._origins, self._index, self._sameness = origins, origins.index, sameness
        self._running, self._read, self._settled = running, read, settled
        self._steps = list(leading(origins, steps))
        self._variables = Variables(origins)

    def problems(self, trained: Iterable[Gradient]) -> list[Problem]:
        """What is wrong with the updates of trained gradients, and with all other changes of variables."""
        updates = {u.call: u for g in trained for u in g.updates}
        found = [p for update in updates.values() if (p := self._update(update)) is not None]
        return [*found, *(p for change in self._beside(updates) if (p := self._changed(change)) is not None)]

    def changes(self, trained: Iterable[Gradient]) -> Iterator[tuple[cst.CSTNode, tuple[cst.CSTNode, ...]]]:
        """Places, besides updates, that give values to variables which a later step depends on, and the values."""
        for change in self._beside({u.call for g in trained for u in g.updates}):
            if self._before_a_step(change.place) and self._is_read(change):
                yield change.place, change.values

    def _beside(self, updates: Collection[cst.CSTNode]) -> Iterator[_Change]:
        return (change for change in self._changes() if change.place not in (*updates, *self._settled))

    def _update(self, update: Update) -> Problem | None:
        if update.kind != "assign" and Mark.LOCAL in self._sameness.of(update.receiver):
            why = because(self._origins, self._sameness, update.receiver)
            reason = (
                "each worker chooses by its own examples the optimizer of this update: their models would drift apart"
            )
            return Problem.since(self._index, "TFDP030", update.receiver, reason, why, _AGREE)
        for arg in update.call.args:
            marks = self._sameness.of(arg.value)
            way = next((way for mark, way in _WAYS.items() if mark in marks), None)
            if way is not None:
                reason = f"the averaged gradients are changed by values that each worker {way[0]}"
                return Problem("TFDP030", update.call, f"{reason}: their models would drift apart", way[1])
        return None

    def _changes(self) -> Iterator[_Change]:
        """Every place that gives variables values, in the order of the text."""
        for call in self._index.calls:
            given = tuple(a.value for a in call.args)
            name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
            if SETS.match(self._origins.called(call)) and given:
                yield _Change(call, given[0], given[1:] or given)
            elif name in CHANGES_VARIABLE | {"set_weights"} and given:
                yield _Change(call, receiver(call), given)
        for stores in self._index.attribute_stores.values():
            for target, value, _ in stores:
                if self._origins.class_of(target.value) is None:
                    yield _Change(target, target, (value,))

    def _changed(self, change: _Change) -> Problem | None:
        marks = self._marks(change)
        test = self._decided_by(change.place)
        if not marks and test is None:
            return None
        if not self._before_a_step(change.place) or not self._is_read(change):
            return None
        if not marks and test is not None:
            why = because(self._origins, self._sameness, test)
            return Problem.since(self._index, "TFDP053", test, _DECIDED, why, _AGREE)
        way = next(way for mark, way in _WAYS.items() if mark in marks)
        reason = f"a variable that the loss depends on gets a value here that each worker {way[0]}"
        own = next((v for v in change.values if Mark.LOCAL in self._sameness.of(v)), None)
        why = None
        if own is not None and way is _WAYS[Mark.LOCAL]:
            why = because(self._origins, self._sameness, own)
        what = f"{reason}: their models would drift apart"
        return Problem.since(self._index, "TFDP040", change.place, what, why, way[1])

    def _marks(self, change: _Change) -> Marks:
        """How the values differ by worker; what is drawn before training begins is rank 0's by the broadcast."""
        found = frozenset(mark for value in change.values for mark in self._sameness.of(value))
        repeats = not self._running.isdisjoint(self._index.ancestors(change.place))
        return found & (_WAYS.keys() if repeats else {Mark.LOCAL})

    def _decided_by(self, place: cst.CSTNode) -> cst.CSTNode | None:
        """The test, or exception, of this worker's examples that decides whether a place is reached."""
        tests = (test for test in tests_around(place, self._origins) if Mark.LOCAL in self._sameness.of(test))
        return next(tests, next(self._sameness.raising(place), None))

    # --- what a change comes before -----------------------------------------------------------------------------------

    def _before_a_step(self, place: cst.CSTNode) -> bool:
        """Whether a step may be taken after a place: it is run by one, stands before one, or in a loop around one."""
        ways = list(leading(self._origins, [place]))
        return any(self._precedes(way, step) for way in ways for step in self._steps) or any(
            self._by_others(way) for way in ways
        )

    def _by_others(self, place: cst.CSTNode) -> bool:
        """Whether a function that nothing in the file calls holds a place: Keras does, at any time."""
        function = self._index.enclosing_function(place)
        return function is not None and not self._origins.calls_of(function)

    def _precedes(self, place: cst.CSTNode, step: cst.CSTNode) -> bool:
        index = self._index
        if index.enclosing_function(place) is not index.enclosing_function(step) or place is step:
            return place is step
        if index.order[place] < index.order[step] or within(index, place, step):
            return True
        return any(loop in index.loops_around(step) for loop in index.loops_around(place))

    # --- what is read -------------------------------------------------------------------------------------------------

    def _is_read(self, change: _Change) -> bool:
        """Whether the variable may be a model's, or is one that the loss is computed from."""
        if last_name(change.place) == ENDS_FIT:
            return True
        node: cst.BaseExpression = change.variable
        while True:
            made = [o.node for o in self._origins.of(node) if isinstance(o.node, cst.Call) and o.node in self._read]
            if made:
                return any(map(self._is_trained_by, made))
            if self._origins.kinds(node) & {Kind.MODEL, Kind.OPTIMIZER}:
                return True
            if isinstance(node, cst.Attribute | cst.Subscript):  # `model.layers[0].kernel`
                node = node.value
            elif isinstance(maker := self._origins.made(node), cst.Call) and isinstance(maker.func, cst.Attribute):
                node = maker.func.value  # `model.get_layer("first")`
            else:
                return self._variables.made(change.variable).collected

    def _is_trained_by(self, made: cst.Call) -> bool:
        """Whether a variable is read in training, and not only in inference, as moving averages are."""
        uses = [n for n in self._read if isinstance(n, cst.Attribute) and self._stands_for(n, made)]
        return not uses or not all(map(self._in_inference, uses))

    def _stands_for(self, read: cst.Attribute, made: cst.Call) -> bool:
        assigned = isinstance(self._index.parents.get(read), cst.Attribute) or self._index.is_target(read)
        return not assigned and any(o.node is made for o in self._origins.of(read))

    def _in_inference(self, node: cst.CSTNode) -> bool:
        """Whether a place is reached only where Keras' `training` is false."""
        child = node
        for parent in self._index.ancestors(node):
            if isinstance(parent, cst.FunctionDef):
                return False
            if isinstance(parent, cst.If | cst.IfExp) and child is not parent.test:
                test = parent.test
                if child is parent.orelse and _asks_training(test):
                    return True
                if child is parent.body and isinstance(test, cst.UnaryOperation) and _asks_training(test.expression):
                    return isinstance(test.operator, cst.Not)
            if isinstance(parent, cst.IndentedBlock) and any(map(_ends_training, parent.body[: _at(parent, child)])):
                return True
            child = parent
        return False


def _asks_training(test: cst.CSTNode) -> bool:
    return isinstance(test, cst.Name) and test.value == "training"


def _ends_training(statement: cst.CSTNode) -> bool:
    """`if training: return …`."""
    asks = isinstance(statement, cst.If) and _asks_training(statement.test) and statement.orelse is None
    last = statement.body.body[-1] if isinstance(statement, cst.If) and statement.body.body else None
    returns = isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Return)
    return asks and returns


def _at(block: cst.IndentedBlock, statement: cst.CSTNode) -> int:
    return next((i for i, each in enumerate(block.body) if each is statement), 0)
