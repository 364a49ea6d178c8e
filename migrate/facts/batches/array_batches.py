"""What has to follow where a script takes its batches out of arrays: sizes, numbers of steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import libcst as cst

from ..data import Take
from ..program import Arithmetic, Definition, Origins, Polynomial, Problem, nodes, reaching, within
from ..training import TrainingLoop


@dataclass(frozen=True)
class ArrayBatches:
    """Of all training loops of a script that take batches out of arrays."""

    origins: Origins
    loops: tuple[TrainingLoop, ...]

    @cached_property
    def takes(self) -> tuple[Take, ...]:
        """Each batch once; also those that are sharded already."""
        found = {t.node: t for loop in self.loops for t in loop.takes}
        lifted = {n: self._lifted(t) for n, t in found.items()}
        return tuple({t.node: t for n, inside in found.items() for t in lifted[n] or [inside]}.values())

    @cached_property
    def _training(self) -> set[cst.CSTNode]:
        return {c for loop in self.loops for c in (*loop.calls, *loop.taking)}

    def _others(self, function: cst.FunctionDef | None) -> list[cst.Call]:
        """Calls of a function that makes training batches, by code that does not train."""
        calls = self.origins.calls_of(function) if function is not None else []
        return [c for c in calls if c not in self._training] if self._training.intersection(calls) else []

    def _lifted(self, take: Take) -> list[Take]:
        """Of a function that makes batches for others too: what its training calls give, in place of the batch."""
        index = self.origins.index
        function = index.enclosing_function(take.node)
        if take.sharded or function is None or not self._others(function) or not isinstance(take.size, Definition):
            return []
        if take.size.kind != "param" or take.size.scope is not function or not self._gives_rows(function):
            return []
        generates = function in index.generators
        lifted = []
        for call in (c for c in self.origins.calls_of(function) if c in self._training):
            size = self.origins.bind(call, function).get(take.size.name)
            if size is None or not any(a.value is size for a in call.args) or (generates and not self._consumed(call)):
                return []
            lifted.append(replace(take, node=call, sizes=(size,), header=(), steps=(), array=None))
        return lifted

    def _consumed(self, call: cst.Call) -> bool:
        """Whether a loop runs over what the call gives."""
        around = self.origins.index.ancestors(call)
        apart = (n for n in around if not isinstance(n, cst.Arg) and self.origins.called(n) != "builtins.enumerate")
        return isinstance(next(apart), cst.For)

    def _gives_rows(self, function: cst.FunctionDef) -> bool:
        """Whether all that a function gives are batches."""
        given = self.origins.index.given_back(function)
        members = [m for g in given for m in ([e.value for e in g.elements] if isinstance(g, cst.Tuple) else [g])]
        return bool(members) and all(map(self._is_rows, members))

    def _is_rows(self, node: cst.BaseExpression) -> bool:
        made = [o.node for o in self.origins.of(node) if not o.path]
        return node in self.rows or (bool(made) and all(m in self.rows for m in made))

    @property
    def open(self) -> tuple[Take, ...]:
        """The batches that are not sharded yet."""
        return tuple(t for t in self.takes if not t.sharded)

    @property
    def rows(self) -> frozenset[cst.CSTNode]:
        """Expressions whose first axis is the batch's."""
        return frozenset(n for loop in self.loops for n in loop.rows)

    @cached_property
    def sizes(self) -> tuple[cst.BaseExpression, ...]:
        """The places, within the batches, that say how many rows they have."""
        return tuple(dict.fromkeys(n for t in self.open for n in t.sizes))

    @cached_property
    def divisors(self) -> tuple[cst.BaseExpression, ...]:
        """The places in loops' ranges that are the batch size."""
        found = dict.fromkeys([*(n for t in self.open for n in t.header), *self._drawn[1]])
        return tuple(n for n in found if n not in self.sizes)

    @cached_property
    def steps(self) -> tuple[cst.BaseExpression, ...]:
        """Numbers of steps that the batch size has no part in."""
        return tuple(dict.fromkeys([*(n for t in self.open for n in t.steps), *self._drawn[0]]))

    # --- draws --------------------------------------------------------------------------------------------------------

    @cached_property
    def _drawn(self) -> tuple[tuple[cst.BaseExpression, ...], tuple[cst.BaseExpression, ...], tuple[Problem, ...]]:
        """Of the loop whose steps draw at random: its number of steps, or the batch sizes that divide in it."""
        draws = [t for t in self.open if not t.counted]
        counted = {t.loops[0] for t in self.open if t.counted}
        if not draws or all(counted & set(t.loops) for t in draws):
            return (), (), ()
        nests = [n for lp in self.loops if (n := {lp.loop, *lp.outer}) & set(draws[0].loops)]
        nests += [set(t.loops) for t in draws]
        common = [loop for loop in draws[0].loops if all(loop in nest for nest in nests)]
        call = self._range(common[0]) if common else None
        if call is None or any(a.star or a.keyword for a in call.args) or not call.args:
            at = common[0] if common else draws[0].node
            reason = "this loop draws its batches at random, and tfdp cannot tell how many steps it has"
            return (), (), (Problem("TFDP011", at, reason, "write the loop as `for step in range(steps)`"),)
        stop = call.args[min(1, len(call.args) - 1)].value
        from_zero = len(call.args) == 1 or (isinstance(f := call.args[0].value, cst.Integer) and f.value == "0")
        divisors = self._divisors(stop, [t.size for t in draws])
        if not divisors and not from_zero:
            reason = "this number of steps does not start at 0"
            return (), (), (Problem("TFDP011", call, reason, "write the loop as `for step in range(steps)`"),)
        return (() if divisors else (stop,)), tuple(divisors), ()

    def _range(self, loop: cst.For | cst.While) -> cst.Call | None:
        """The range of numbers that a loop goes over."""
        counters = [d for d in self.origins.index.bound[loop] if d.kind == "for"]
        ranges = map(Arithmetic(self.origins).range_of, counters)
        return next((call for call in ranges if call is not None), None)

    def _divisors(self, stop: cst.BaseExpression, sizes: list[object]) -> list[cst.BaseExpression]:
        """`B` in `n // B`."""
        divisions = [n for n in nodes(stop) if isinstance(n, cst.BinaryOperation)]
        by = [n.right for n in divisions if isinstance(n.operator, cst.FloorDivide | cst.Divide)]
        read = [(node, Arithmetic(self.origins).polynomial(node, {})) for node in by]
        return [n for n, size in read if isinstance(size, Polynomial) and size.size and size.size in sizes]

    # --- problems -----------------------------------------------------------------------------------------------------

    def problems(self, batch: str) -> list[Problem]:
        """What keeps the batches from being larger ones."""
        found = [*self._shared(), *self._without_training()]
        next_step = "take batches of whole examples, whose first axis is the batch's all the way to the model"
        for node in dict.fromkeys(n for loop in self.loops for n in loop.turned if self.open):
            reason = "here the rows taken out of an array become something else than the examples of a batch"
            found.append(Problem("TFDP010", node, reason, next_step))
        return [*found, *(self._drawn[2] if batch == "per-worker" else ())]

    def _shared(self) -> Iterable[Problem]:
        """Helpers that give batches to other code too: that would get a worker's rows only."""
        functions = [self.origins.index.enclosing_function(take.node) for take in self.open]
        for function in (f for f in functions if f is not None):
            whole = "the training batches, which are sharded, and other batches, which have to stay whole"
            for call in self._others(function):
                reason = f"{function.name.value}() makes {whole}"
                yield Problem("TFDP010", call, reason, "give the training data a function of their own")

    def _without_training(self) -> Iterable[Problem]:
        """Loops that also run without training: what they would measure then are a worker's rows only."""
        index = self.origins.index
        reason = "this loop runs with and without training, and its batches are sharded over the workers"
        next_step = "write the evaluation, whose batches stay whole, as a loop of its own"
        for loop in self.loops:
            function = index.enclosing_function(loop.loop)
            if function is None or not loop.takes or len(self.origins.calls_of(function)) < 2:
                continue
            above = (p for step in loop.calls for p in index.ancestors(step) if isinstance(p, cst.If))
            for choice in (p for p in above if within(index, p, loop.loop)):
                names = (n for n in nodes(choice.test) if isinstance(n, cst.Name))
                bound = (d for name in names for d in reaching(index, name))
                if any(d.kind == "param" and d.scope is function for d in bound):
                    yield Problem("TFDP010", choice, reason, next_step)
