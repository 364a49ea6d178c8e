"""The loop that trains: from a gradient call outwards to the data it runs over and to the place before all steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import libcst as cst

from ...catalogue import Kind
from ..data import Chain, Datasets, Missed, NextBatch, NextBatches, Sought, StepRows, Sureness, Take, Takes
from ..program import Origins, Problem, Unknown, backward, reaching, uncalled, within
from .tapes import Gradient, reaches_update, roots
from .ways import frames, leads_to_no_update


@dataclass(frozen=True)
class TrainingLoop:
    """`for batch in dataset:`, or a loop that takes each batch by `next(iterator)` or out of arrays, around a step.

    `calls` lead from the loop's body to the gradient; `before` is the statement before which nothing has been trained:
    the outermost loop, or the call that leads to it. `takes` are the batches taken out of arrays, `taking` the calls of
    the file's own functions that take them, `rows` the expressions whose first axis is such a batch's, `arrays` what
    the rows are taken of, `turned` what makes something else than examples of them.
    """

    gradient: Gradient
    loop: cst.For | cst.While
    chains: tuple[Chain, ...]
    calls: tuple[cst.CSTNode, ...]
    before: cst.CSTNode
    outer: tuple[cst.For | cst.While, ...]
    taken: bool = False  # batches are taken one by one: the loop does not end by itself where the data do
    takes: tuple[Take, ...] = ()
    taking: tuple[cst.Call, ...] = ()
    rows: frozenset[cst.CSTNode] = frozenset()
    arrays: tuple[cst.BaseExpression, ...] = ()
    turned: tuple[cst.CSTNode, ...] = ()
    aside: tuple[cst.Call, ...] = ()  # calls of the loop's function that train nothing: their data stay whole


@dataclass(frozen=True)
class _Unfed:
    """A gradient in loops none of which gives it data, as far as is known; the innermost first."""

    gradient: Gradient
    calls: tuple[cst.CSTNode, ...]
    loops: tuple[cst.For | cst.While, ...]


@dataclass(frozen=True)
class _Once:
    """A step outside all loops, on batches that are taken of datasets."""

    gradient: Gradient
    call: cst.CSTNode
    chains: tuple[Chain, ...]


def wrappers(origins: Origins, function: cst.FunctionDef) -> list[cst.BaseExpression]:
    """What is put around a function: its decorators, and the calls of tf.function that are given it."""
    calls = [c for c in origins.index.calls if c.args and origins.kind(c.func) is Kind.COMPILER]
    made = [c for c in calls if origins.function(c.args[0].value) is function]
    return [*(d.decorator for d in function.decorators), *made]


class Loops:
    """Finds the training loops of a script."""

    def __init__(self, origins: Origins, datasets: Datasets) -> None:
        self._origins, self._index, self._datasets = origins, origins.index, datasets
        self._takings = NextBatches(origins, datasets.chains)
        self._foreign = NextBatches(origins, datasets.foreign)
        self._takes = Takes(origins, datasets)

    def of_all(self, gradients: Iterable[Gradient]) -> tuple[TrainingLoop | Problem, ...]:
        """Every loop over a dataset in which one of the gradients is taken.

        A Problem for each way to one without such a loop. A gradient that needs no data of its own (a generator's,
        of noise) is trained by the loop around it that feeds another.
        """
        found = [self._elsewhere(f) if isinstance(f, _Unfed) else f for g in gradients for f in self.of(g)]
        known = [self._before_loops(f, found) if isinstance(f, _Once) else f for f in found]
        feeding = {b: bool(f.chains) for f in found if isinstance(f, TrainingLoop) for b in (f.loop, *f.outer)}
        unfed = [f for f in known if isinstance(f, _Unfed)]
        return tuple(self._beside(f, feeding, unfed) if isinstance(f, _Unfed) else f for f in known if f is not None)

    def _before_loops(self, once: _Once, found: Iterable[object]) -> Problem | None:
        """Nothing for a first step on a batch of data that a loop trains on by the same code."""
        loops = (f for f in found if isinstance(f, TrainingLoop) and f.gradient is once.gradient)
        looped = {tuple(link.call for link in c.links) for loop in loops for c in loop.chains}
        if all(tuple(link.call for link in c.links) in looped for c in once.chains):
            return None
        return Problem("TFDP010", once.call, _NO_LOOP, _CALL)

    def _beside(
        self, unfed: _Unfed, feeding: dict[cst.For | cst.While, bool], others: list[_Unfed]
    ) -> TrainingLoop | Problem:
        shared = next((i for i, loop in enumerate(unfed.loops) if loop in feeding), None)
        if shared is None:
            if (function := self._uncalled(unfed.loops[0])) is not None:
                why = uncalled(self._origins, function)
                next_step = _CALLED if why.because is None else _BY_NAME
                return Problem.since(self._index, "TFDP010", unfed.loops[0], _UNCALLED, why, next_step)
            return self._no_data(unfed.loops[0], [o for o in others if o.loops[0] is unfed.loops[0]])
        return self._loop(unfed, shared, taken=feeding[unfed.loops[shared]])

    def _loop(self, step: _Unfed, place: int, chains: tuple[Chain, ...] = (), taken: bool = False) -> TrainingLoop:
        """The training loop at a place around a step."""
        before, outer = self._before(step.loops[-1]), step.loops[place + 1 :]
        return TrainingLoop(step.gradient, step.loops[place], chains, step.calls, before, outer, taken)

    def _no_data(self, loop: cst.For | cst.While, steps: list[_Unfed]) -> Problem:
        """A loop that trains on nothing that is followed: of all steps in it, the surest place that its data have."""
        found = [m for step in steps if (m := self._missed(step)) is not None]
        missed = min(found, key=lambda m: m.sureness, default=None)
        if missed is None:
            return Problem("TFDP010", loop, _NO_BATCH, _DATA)
        keeps = missed.sureness is Sureness.KEEPS
        what, next_step = (_SAME_DATA, _BATCHES) if keeps else (_NO_DATA, _DATA)
        return Problem.since(self._index, "TFDP010", loop, what, missed.unknown, next_step)

    def _missed(self, step: _Unfed) -> Missed | None:
        """Where a step's data may be made in a way that is not followed."""
        taken = self._taken(step, why=True)
        mine = [lp for t in taken.takes.values() for lp in t.loops if lp in step.loops]
        if mine:
            reason = "takes batches of arrays, which are followed in `for` loops only"
            return Missed(Unknown(mine[0], reason), Sureness.TAKES)
        return taken.surest

    def _elsewhere(self, unfed: _Unfed) -> TrainingLoop | _Unfed:
        """The loop that takes its batches from what another file makes."""
        taken = self._foreign.feeding(unfed.calls[-1])
        for place, loop in enumerate(unfed.loops):
            over = self._datasets.foreign(loop.iter) if isinstance(loop, cst.For) else ()
            over = over if over and self._feeds(loop, unfed.gradient) else ()
            if (found := self._fed(unfed, place, over, taken)) is not None:
                return found
        return unfed

    def _fed(
        self,
        step: _Unfed,
        place: int,
        over: tuple[Chain, ...],
        taken: tuple[NextBatch, ...],
        fed: tuple[Chain, ...] = (),
    ) -> TrainingLoop | None:
        """The loop at a place around a step, should it go over datasets or a batch be taken in it; `fed` are datasets
        of which batches are taken further in."""
        here = (c for t in taken if within(self._index, t.call, step.loops[place].body) for c in t.chains)
        chains = tuple(dict.fromkeys([*over, *here, *fed]))
        return self._loop(step, place, chains, taken=not over) if chains else None

    def _feeds(self, loop: cst.For | cst.While, gradient: Gradient) -> bool:
        """Whether a gradient is computed from what a loop goes over."""
        used = backward(self._origins, gradient.made_of)
        names = (n for n in used if isinstance(n, cst.Name))
        return any(d.statement is loop for n in names for d in reaching(self._index, n))

    def of(self, gradient: Gradient) -> tuple[TrainingLoop | Problem | _Unfed | _Once, ...]:
        """What `of_all` finds for one gradient by itself."""
        found = tuple(self._climb(gradient, gradient.call, ()))
        return found or (Problem("TFDP010", gradient.call, "no loop is found that runs this training step", _CALL),)

    def _climb(
        self, gradient: Gradient, node: cst.CSTNode, calls: tuple[cst.CSTNode, ...], fed: tuple[Chain, ...] = ()
    ) -> Iterator[TrainingLoop | Problem | _Unfed | _Once]:
        if node in calls:
            return
        calls = (*calls, node)
        loops = tuple(self._index.loops_around(node))
        taken, step = self._takings.feeding(node), _Unfed(gradient, calls, loops)
        for place, loop in enumerate(loops):
            aside = self._aside(step, loop)
            if (here := self._fed(step, place, self._over(loop, aside), taken, fed)) is not None:
                yield replace(here, aside=aside)
                return
        if loops and (arrays := self._over_arrays(step)) is not None:
            yield arrays
            return
        fed = (*fed, *(c for t in taken for c in t.chains if not loops))
        callers = self._callers(gradient, node)
        found = [f for caller in callers for f in self._climb(gradient, caller, calls, fed)]
        if loops and all(isinstance(f, Problem | _Once) for f in found):
            yield step
        elif callers:
            yield from found
        elif fed:
            yield _Once(gradient, node, fed)
        else:
            function = self._uncalled(node)
            why = uncalled(self._origins, function) if function is not None else None
            yield Problem.since(self._index, "TFDP010", node, _NO_LOOP if why is None else _NO_CALL, why, _CALL)

    def _over(self, loop: cst.For | cst.While, aside: tuple[cst.Call, ...]) -> tuple[Chain, ...]:
        """The datasets that a loop runs over: itself, or by `zip(range(n), dataset)`, not given by calls aside."""
        if not isinstance(loop, cst.For):
            return ()
        datasets = self._datasets
        if aside and (function := self._index.enclosing_function(loop)) is not None:
            training = frozenset(self._origins.calls_of(function)) - {*aside}
            datasets = Datasets(Origins(self._index, self._origins.names, training))
        iterated = datasets.unwrap(loop.iter)
        if isinstance(iterated, cst.Call) and self._origins.called(iterated) == "builtins.zip":
            return tuple(c for a in iterated.args for c in datasets.chains(datasets.unwrap(a.value)))
        return datasets.chains(iterated)

    def _aside(self, step: _Unfed, loop: cst.For | cst.While) -> tuple[cst.Call, ...]:
        """The calls of a loop's function that train nothing, where others do."""
        function = self._index.enclosing_function(loop)
        callers = self._origins.calls_of(function) if function is not None else []
        aside = [c for c in callers if leads_to_no_update(self._origins, step.gradient, (*step.calls, c))]
        return tuple(aside) if len(aside) < len(callers) else ()

    def _taken(self, step: _Unfed, why: bool = False) -> StepRows:
        """The batches that a step takes out of arrays."""
        path = tuple(loop for call in step.calls for loop in self._index.loops_around(call))
        sought = Sought(step.gradient.made_of, path, tuple(roots(step.gradient.sources)), why)
        return self._takes.of(sought, dict(frames(self._origins, step.calls)))

    def _over_arrays(self, step: _Unfed) -> TrainingLoop | None:
        """The loop whose steps take batches out of arrays."""
        taken = self._taken(step)
        mine = {n: t for n, t in taken.takes.items() if any(loop in step.loops for loop in t.loops)}
        if not mine:
            return None
        taken = self._takes.others(replace(taken, takes=mine), dict(frames(self._origins, step.calls)))
        place = min(step.loops.index(loop) for t in mine.values() for loop in t.loops if loop in step.loops)
        if not isinstance(step.loops[place], cst.For):
            return None
        takes, arrays, turned = tuple(taken.takes.values()), tuple(taken.arrays), tuple(taken.turned)
        found = replace(self._loop(step, place), takes=takes, arrays=arrays, turned=turned)
        return replace(found, taking=tuple(taken.calls), rows=frozenset(taken.rows))

    def _uncalled(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The function around a place, where no call of it is known."""
        function = self._index.enclosing_function(node)
        return function if function is not None and not self._origins.calls_of(function) else None

    def _callers(self, gradient: Gradient, node: cst.CSTNode) -> list[cst.Call]:
        """The calls that lead to the step.

        Where the update is the caller's business, those whose result reaches one.
        """
        function = self._index.enclosing_function(node)
        if function is None or not isinstance(node, cst.Call):
            return []
        callers = self._origins.calls_of(function)
        updates_here = any(within(self._index, u.call, function) for u in gradient.updates)
        if len(callers) < 2 or updates_here or gradient.fed or reaches_update(self._origins, node, inside=function):
            return callers
        return [c for c in callers if reaches_update(self._origins, c)]

    def before(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement before which a call that trains has not run."""
        around = self._index.loops_around(node)
        return self._before(around[-1] if around else self._index.statement_of(node))

    def _before(self, outermost: cst.CSTNode) -> cst.CSTNode:
        """Climb on while the loop is in a function that is called once, itself in a loop or as part of a graph."""
        function = self._index.enclosing_function(outermost)
        if function is None:
            return outermost
        callers = self._origins.calls_of(function)
        if len(callers) != 1:
            return outermost
        loops = self._index.loops_around(callers[0])
        if loops:
            return self._before(loops[-1])
        return self._before(self._index.statement_of(callers[0])) if self.in_graph(function) else outermost

    def is_compiled(self, node: cst.CSTNode) -> bool:
        """Whether the node is in a function that TensorFlow compiles, itself or where it is called."""
        function = self._index.enclosing_function(node)
        return function is not None and self.in_graph(function)

    def in_graph(self, function: cst.FunctionDef) -> bool:
        """Whether the function is compiled by tf.function: by decorator or by a call."""
        made = wrappers(self._origins, function)
        return any(self._origins.kind(m.func if isinstance(m, cst.Call) else m) is Kind.COMPILER for m in made)


_CALL = "call the training step in a `for batch in dataset:` loop of this file"
_NO_LOOP = "this training step is in no `for` or `while` loop over data"
_NO_CALL = "cannot tell which loop runs this training step"
_UNCALLED = "cannot tell what data this loop is given"
_CALLED = "put the function and what calls it with its data into one file"
_BY_NAME = "call the function by its name, with its data"
_NO_DATA = "cannot tell where this loop's batches come from"
_NO_BATCH = "cannot tell where this loop's batches come from: none is found in what its loss is computed from"
_SAME_DATA = "no batch of data is seen to be taken in this loop"
_BATCHES = "train on batches: `for batch in tf.data.Dataset.from_tensor_slices(…).batch(size):`"
_DATA = (
    "iterate a tf.data.Dataset: `for batch in dataset:`, take its batches by `next(iterator)`, or slice arrays by the "
    "loop's counter: `x[i:i + size]`"
)


def loop_exits(loop: TrainingLoop) -> list[cst.CSTNode]:
    """`break` and `return` that end the training loop or one around it."""
    return [each for around in (loop.loop, *loop.outer) for each in _exits(around.body, own=True)]


def _exits(node: cst.CSTNode, own: bool) -> list[cst.CSTNode]:
    """Statements that leave the loop around `node`; `own` is False inside an inner loop, whose `break` is its own."""
    found: list[cst.CSTNode] = []
    for child in node.children:
        if isinstance(child, cst.FunctionDef | cst.ClassDef | cst.Lambda):
            continue
        if isinstance(child, cst.Return) or (isinstance(child, cst.Break) and own):
            found.append(child)
        found += _exits(child, own and not isinstance(child, cst.For | cst.While))
    return found
