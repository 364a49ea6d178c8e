"""Where the number of a worker's own examples decides how training goes on: globally it is a share of the batch.

What a loss is made of is asked of the loss: there the number of its own examples is the right one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ...catalogue import Kind
from ..apis import CALLED, INPUTS, KERAS_COMPUTES, SPANS
from ..data import Datasets
from ..keras import methods_below
from ..losses import Losses, Reduction
from ..program import (
    Frames,
    Origins,
    Problem,
    Unknown,
    controls,
    leading,
    method,
    parts,
    reaching,
    receiver,
    tests_around,
    ways_back,
)
from ..sameness import Counts, Mark, OwnCounts, Sameness
from ..training import Gradient, TrainingLoop
from .drift import Drift
from .whole_counts import WholeCounts

_Found = tuple[Problem, Counts]

_UPDATE = "the update depends here on how many examples a worker has at hand, which is its share of the batch"
_RATE = "the learning rate depends here on how many examples a worker has at hand, which is its share of the batch"
_OPTIMIZER = "the optimizer depends here on how many examples a worker has at hand, which is its share of the batch"
_VARIABLE = (
    "a variable that training depends on gets a value here that follows how many examples a worker has at hand, which "
    "is its share of the batch"
)
_DECISION = "this decides about training by how many examples a worker has at hand, which is its share of the batch"
_DATA = "what a batch holds depends here on how many examples a worker has at hand, which is its share of the batch"
_LOSS = "this decides what the loss is by how many examples a worker has at hand, which is its share of the batch"
_TURNS = (
    "how often this loop around the training step runs depends on how many examples a worker has at hand, which is its "
    "share of the batch"
)
_OUTPUT = (
    "what the model computes depends here on how many examples a worker has at hand, which is its share of the batch"
)
_NEXT = "use the size of the whole batch, a constant with drop_remainder=True, or use --batch per-worker"

_NUMBERS = frozenset({Reduction.CONSTANT, Reduction.MEAN, Reduction.SUM})


class Shares:
    """Asks everything that reaches an update, besides losses, for counts of a worker's own examples."""

    def __init__(
        self,
        origins: Origins,
        datasets: Datasets,
        sameness: Sameness,
        losses: Losses,
        *,
        loops: Iterable[TrainingLoop],
        gradients: Iterable[Gradient],
        averaged: Collection[cst.CSTNode],
    ) -> None:
        """loops: those over batches. gradients: all of the file. averaged: what becomes a number of all workers."""
        self._origins, self._index = origins, origins.index
        self._datasets, self._sameness, self._losses = datasets, sameness, losses
        self._loops = {loop.loop for loop in loops}
        taken = tuple(gradients)
        targets = [value for g in taken for value in g.made_of]
        made = [o.node for t in targets for o in origins.of(t)]
        settled = [*(g.call for g in taken), *targets, *made, *averaged]
        self._counts = OwnCounts(origins, self._is_batch, self._is_data, settled)

    def _is_batch(self, node: cst.CSTNode, frames: Frames) -> bool:
        """Whether a value may have one row for each example of a worker."""
        assert isinstance(node, cst.BaseExpression)
        if self._datasets.chains(node):
            return False
        marks = self._sameness.of(node, frames)
        if Mark.LOCAL not in marks:
            return (not marks or Mark.UNKNOWN in marks) and self._is_given(node)
        found = self._losses.value(node)
        one = isinstance(node, cst.Subscript) and found.reduction is Reduction.UNKNOWN and _is_one(node)
        return not (found.reduction in _NUMBERS or found.of_all or one)

    def _is_data(self, node: cst.BaseExpression) -> bool:
        """Whether a loop over this goes over a dataset."""
        return bool(self._datasets.chains(self._datasets.unwrap(node)))

    def _is_given(self, node: cst.BaseExpression) -> bool:
        """Whether a value is one row for each of what Keras, or a dataset, gives a function at each step."""
        if self._losses.value(node).reduction is not Reduction.PER_EXAMPLE:
            return False
        made = parts(self._origins, node)
        named = (o.node for part in made if isinstance(part, cst.Name) for o in self._origins.of(part))
        given = any(isinstance(each, cst.Param) and self._is_called_outside(each) for each in named)
        return given or any(self._origins.called(part) in INPUTS for part in made)

    def _is_called_outside(self, parameter: cst.Param) -> bool:
        """Whether code outside the file gives a parameter its value, or a call that unpacks a worker's examples."""
        scope = self._index.parents[self._index.parents[parameter]]
        calls = self._origins.calls_of(scope) if isinstance(scope, cst.FunctionDef) else []
        given = (a.value for c in calls for a in c.args if a.star or parameter.star)
        unpacked = any(Mark.LOCAL in self._sameness.of(value) for value in given)
        return parameter.name.value != "self" and (not calls or unpacked)

    def found(
        self,
        trained: Iterable[Gradient],
        *,
        rates: Iterable[tuple[cst.CSTNode, tuple[cst.CSTNode, ...]]],
        drift: Drift,
        read: Collection[cst.CSTNode],
        mapped: Iterable[cst.BaseExpression],
    ) -> tuple[tuple[Problem, ...], tuple[cst.BaseExpression, ...]]:
        """The problems, and counts that become those of all workers, which solves others.

        rates: places that assign learning rates, and what they read and are decided by. read: all that trained losses
        are computed from. mapped: functions that change batches once they are a worker's."""
        gradients = tuple(trained)
        found = [*self._updates(gradients), *self._rates(rates), *self._optimizers()]
        found += [*self._variables(drift, gradients), *self._ways(gradients), *self._models(read)]
        found += [*self._fed(gradients), *self._conditions(read), *self._data(mapped)]
        made = [c for c in self._index.calls if self._origins.kind(c.func) is Kind.OPTIMIZER]
        ends = {*made, *(u.call for g in gradients for u in g.updates), *(place for place, _ in rates)}
        whole = WholeCounts(self._origins, self._sameness, self._counts, read=read, ends=ends)
        becomes = {count: whole.of(count) for _, counts in found for count in counts}
        left = [(p, counts) for p, counts in found if any(becomes[count] is None for count in counts)]
        lifted = dict.fromkeys(n for count, n in becomes.items() if n is not None)
        problems = {p.node: p for p, _ in reversed(left)}
        return tuple(reversed(problems.values())), tuple(sorted(lifted, key=lambda n: self._index.order[n]))

    def _problem(self, code: str, node: cst.CSTNode, reason: str, counts: Counts) -> _Found:
        first = min(counts, key=lambda n: self._index.order.get(n, 0))
        why = Unknown(first, "counts this worker's examples") if first is not node else None
        return Problem.since(self._index, code, node, reason, why, _NEXT), counts

    def _of(self, code: str, place: cst.CSTNode, reason: str, read: Iterable[cst.CSTNode]) -> Iterator[_Found]:
        counts = self._counts.all(read)
        if counts:
            yield self._problem(code, place, reason, counts)

    def _updates(self, trained: Iterable[Gradient]) -> Iterator[_Found]:
        updates = {u.call: u for g in trained for u in g.updates if u.call is not g.call}
        for call in updates:
            yield from self._of("TFDP014", call, _UPDATE, [a.value for a in call.args])

    def _rates(self, rates: Iterable[tuple[cst.CSTNode, tuple[cst.CSTNode, ...]]]) -> Iterator[_Found]:
        for place, read in rates:
            yield from self._of("TFDP014", place, _RATE, read)

    def _optimizers(self) -> Iterator[_Found]:
        for call in self._index.calls:
            if self._origins.kind(call.func) is Kind.OPTIMIZER:
                yield from self._of("TFDP014", call, _OPTIMIZER, [a.value for a in call.args])

    def _variables(self, drift: Drift, trained: Iterable[Gradient]) -> Iterator[_Found]:
        for place, values in drift.changes(trained):
            yield from self._of("TFDP014", place, _VARIABLE, [*values, *controls(place, self._origins)])

    def _ways(self, trained: Iterable[Gradient]) -> Iterator[_Found]:
        """What decides whether, and how often, a step is taken."""
        steps = [call for g in trained for call in (g.call, *(u.call for u in g.updates))]
        places = leading(self._origins, steps)
        for test in dict.fromkeys(t for place in places for t in controls(place, self._origins)):
            yield from self._of("TFDP014", test, _DECISION, [test])
        for call in dict.fromkeys(call for place in places for call in self._handed_to(place)):
            yield from self._of("TFDP014", call, _DECISION, [a.value for a in call.args])
        for loop in dict.fromkeys(lp for place in places for lp in self._index.loops_around(place)):
            counts = self._counts.turns(loop)
            if counts and isinstance(loop, cst.For) and loop not in self._loops:
                yield self._problem("TFDP014", loop.iter, _TURNS, counts)

    def _handed_to(self, place: cst.CSTNode) -> Iterator[cst.Call]:
        """`tf.cond(test, step, skip)`: what is given the function that holds a place."""
        function = self._index.enclosing_function(place)
        named = self._index.names.get(function.name.value, ()) if function is not None else ()
        for use in named:
            holder = self._index.parents[use]
            call = self._index.parents[holder] if isinstance(holder, cst.Arg) else None
            if isinstance(call, cst.Call) and self._origins.function(use) is function:
                yield call

    def _fed(self, trained: Iterable[Gradient]) -> Iterator[_Found]:
        """What `train_on_batch` is given besides examples, as weights of theirs."""
        for call in (g.call for g in trained if g.fed):
            yield from self._of("TFDP014", call, _UPDATE, [a.value for a in call.args])

    def _data(self, mapped: Iterable[cst.BaseExpression]) -> Iterator[_Found]:
        """`dataset.batch(n).map(function)`."""
        for value in mapped:
            function = self._origins.function(value)
            given = [value.body] if isinstance(value, cst.Lambda) else []
            for each in self._index.given_back(function) if function is not None else given:
                yield from self._of("TFDP014", each, _DATA, [each])

    def _conditions(self, read: Collection[cst.CSTNode]) -> Iterator[_Found]:
        """What decides, inside a loss, by which values it is computed."""
        tests: dict[cst.CSTNode, None] = {}
        for node in sorted(read, key=lambda n: self._index.order.get(n, 0)):
            if isinstance(node, cst.Comparison):
                tests[node] = None
            elif isinstance(node, cst.IfExp):
                tests[node.test] = None
            elif isinstance(node, cst.Name):
                found = reaching(self._index, node)
                bound = found if len(found) > 1 else []
                tests.update((t, None) for d in bound for t in tests_around(d.statement, self._origins))
            elif isinstance(node, cst.Subscript):
                tests.update(dict.fromkeys(self._looked_up(node)))
            elif isinstance(node, cst.Call) and (function := self._origins.function(node.func)) is not None:
                tests.update(
                    (t, None) for p in ways_back(function, self._origins) for t in tests_around(p, self._origins)
                )
        for test in tests:
            yield from self._of("TFDP014", test, _LOSS, [test])

    def _looked_up(self, node: cst.Subscript) -> Iterator[cst.BaseExpression]:
        """What names the one element that is taken: `weights[len(x)]`."""
        for index in (element.slice for element in node.slice):
            value = index.value if isinstance(index, cst.Index) else None
            if value is not None and self._losses.value(value).reduction is not Reduction.PER_EXAMPLE:
                spans = self._origins.called(self._origins.made(value)) in SPANS
                yield from () if spans else (value,)

    def _models(self, read: Collection[cst.CSTNode]) -> Iterator[_Found]:
        """What layers give, models are made of, and are given in training."""
        for function in methods_below(self._origins, CALLED, KERAS_COMPUTES):
            for value in self._index.returned(function):
                yield from self._of("TFDP014", value, _OUTPUT, [value])
        for call in self._index.calls:
            made = self._origins.kind(call.func) is Kind.MODEL
            given = call in read and Kind.MODEL in self._origins.kinds(call.func)
            grown = method(call) == "add" and Kind.MODEL in self._origins.kinds(receiver(call))
            if made or given or grown:
                for value in (a.value for a in call.args):
                    yield from self._of("TFDP014", value, _OUTPUT, [value])


def _is_one(node: cst.Subscript) -> bool:
    """`images[0]`."""
    index = node.slice[0].slice
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Integer)
