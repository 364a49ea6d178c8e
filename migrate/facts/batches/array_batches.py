"""What has to follow where a script takes its batches out of arrays: sizes, numbers of steps, lengths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..data import Take
from ..program import Definition, Origins, Problem, nodes, parts, reaching
from ..training import TrainingLoop

_RANGES = frozenset({"builtins.range", "tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange"})
_TENSORFLOW_DRAWS = ("tensorflow.random.", "keras.random.")


@dataclass(frozen=True)
class ArrayBatches:
    """Of all training loops of a script that take batches out of arrays."""

    origins: Origins
    loops: tuple[TrainingLoop, ...]

    @cached_property
    def takes(self) -> tuple[Take, ...]:
        """Each batch once; also those that are dealt already."""
        found = {t.node: t for loop in self.loops for t in loop.takes}
        lifted = {n: self._lifted(t) for n, t in found.items()}
        return tuple({t.node: t for n, inside in found.items() for t in lifted[n] or [inside]}.values())

    @cached_property
    def _training(self) -> set[cst.CSTNode]:
        return {c for loop in self.loops for c in (*loop.calls, *loop.taking)}

    def _others(self, function: cst.FunctionDef | None) -> list[cst.Call]:
        """Calls of a function that makes training batches, by code that does not train."""
        if function is None or not any(self.origins.function(c.func) is function for c in _calls(self._training)):
            return []
        return [c for c in self.origins.calls_of(function) if c not in self._training]

    def _lifted(self, take: Take) -> list[Take]:
        """Of a function that makes batches for others too: what its training calls give, in place of the batch."""
        index = self.origins.index
        function = index.enclosing_function(take.node)
        if take.dealt or function is None or not self._others(function) or not isinstance(take.size, Definition):
            return []
        if take.size.kind != "param" or take.size.scope is not function or not self._gives_rows(function):
            return []
        generates = function in index.generators
        lifted = []
        for call in (c for c in self.origins.calls_of(function) if c in self._training):
            size = self.origins.bind(call, function).get(take.size.name)
            if size is None or not any(a.value is size for a in call.args) or (generates and not self._consumed(call)):
                return []
            lifted.append(
                replace(take, node=call, sizes=(size,), header=(), steps=(), lengths=(), array=None, each=generates)
            )
        return lifted

    def _consumed(self, call: cst.Call) -> bool:
        """Whether a loop runs over what the call gives."""
        for node in self.origins.index.ancestors(call):
            if isinstance(node, cst.For):
                return True
            known = isinstance(node, cst.Call) and self.origins.names.api(node.func) == "builtins.enumerate"
            if not isinstance(node, cst.Arg) and not known:
                return False
        return False

    def _gives_rows(self, function: cst.FunctionDef) -> bool:
        """Whether all that a function gives are batches."""
        index = self.origins.index
        if function in index.generators:
            yields = [n for n in nodes(function.body) if isinstance(n, cst.Yield)]
            given = [n.value for n in yields if index.enclosing_function(n) is function]
        else:
            given = [r.value for r in index.returns[function]]
        members = [m for g in given for m in ([e.value for e in g.elements] if isinstance(g, cst.Tuple) else [g])]
        return bool(members) and all(isinstance(m, cst.BaseExpression) and self._is_rows(m) for m in members)

    def _is_rows(self, node: cst.BaseExpression) -> bool:
        made = [o.node for o in self.origins.of(node) if not o.path]
        return node in self.rows or (bool(made) and all(m in self.rows for m in made))

    @property
    def open(self) -> tuple[Take, ...]:
        """The batches that are not dealt yet."""
        return tuple(t for t in self.takes if not t.dealt)

    @property
    def rows(self) -> frozenset[cst.CSTNode]:
        """Expressions whose first axis is the batch's."""
        return frozenset(n for loop in self.loops for n in loop.rows)

    @cached_property
    def sizes(self) -> tuple[cst.BaseExpression, ...]:
        """The places, within the batches, that say how many rows they have."""
        return tuple(dict.fromkeys(n for t in self.open for n in t.sizes))

    @property
    def last_sizes(self) -> tuple[cst.BaseExpression, ...]:
        """Of each batch, one of them."""
        return tuple(dict.fromkeys(t.sizes[-1] for t in self.open if t.sizes))

    @cached_property
    def divisors(self) -> tuple[cst.BaseExpression, ...]:
        """The places in loops' ranges that are the batch size."""
        found = [n for t in self.open for n in t.header]
        found += [n for n in self._drawn[1] if n not in found]
        return tuple(n for n in dict.fromkeys(found) if n not in self.sizes)

    @cached_property
    def steps(self) -> tuple[cst.BaseExpression, ...]:
        """Numbers of steps that the batch size has no part in."""
        return tuple(dict.fromkeys([*(n for t in self.open for n in t.steps), *self._drawn[0]]))

    @cached_property
    def lengths(self) -> tuple[cst.BaseExpression, ...]:
        """Numbers of records up to which loops run."""
        return tuple(dict.fromkeys(n for t in self.open for n in t.lengths))

    @property
    def counting(self) -> frozenset[cst.CSTNode]:
        """All that says which rows a batch has: of it, the batch size is the one of all workers."""
        return frozenset(n for each in (*self.sizes, *self.divisors, *self.steps, *self.lengths) for n in nodes(each))

    @property
    def arrays(self) -> tuple[cst.BaseExpression, ...]:
        """What batches are taken from."""
        return tuple(dict.fromkeys(a for loop in self.loops for a in loop.arrays))

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
        node = loop.iter if isinstance(loop, cst.For) else None
        while isinstance(node, cst.Call):
            api = self.origins.names.api(node.func)
            if api in _RANGES:
                return node
            wraps = api == "builtins.enumerate" or self.origins.kind(node.func) is Kind.PROGRESS
            node = node.args[0].value if wraps and node.args else None
        return None

    def _divisors(self, stop: cst.BaseExpression, sizes: list[object]) -> list[cst.BaseExpression]:
        """`B` in `n // B`."""
        found = []
        for node in nodes(stop):
            if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.FloorDivide | cst.Divide):
                continue
            size = self._size(node.right)
            if size is not None and size in sizes:
                found.append(node.right)
        return found

    def _size(self, node: cst.BaseExpression) -> object:
        if isinstance(node, cst.Integer):
            return int(node.evaluated_value)
        if isinstance(node, cst.Name):
            found = reaching(self.origins.index, node)
            return found[0] if len(found) == 1 else None
        text = isinstance(node, cst.Attribute | cst.Subscript)
        return self.origins.index.code(node).strip() if text else None

    # --- problems -----------------------------------------------------------------------------------------------------

    def problems(self, batch: str) -> list[Problem]:
        """What keeps the batches from being dealt."""
        found = [*self._shared(), *self._without_training(), *self._drawn_by_rank()]
        next_step = "take batches of whole examples, whose first axis is the batch's all the way to the model"
        for node in dict.fromkeys(n for loop in self.loops for n in loop.turned if self.open):
            reason = "here the rows taken out of an array become something else than the examples of a batch"
            found.append(Problem("TFDP010", node, reason, next_step))
        return [*found, *(self._drawn[2] if batch == "per-worker" else ())]

    def _shared(self) -> Iterable[Problem]:
        """Helpers that give batches to other code too: that would get a worker's rows only."""
        for take in self.open:
            function = self.origins.index.enclosing_function(take.node)
            for call in self._others(function) if function is not None else ():
                assert function is not None
                yield Problem(
                    "TFDP010",
                    call,
                    f"{function.name.value}() makes the training batches, which are sharded, and other batches, which "
                    "have to stay whole",
                    "give the training data a function of their own",
                )

    def _without_training(self) -> Iterable[Problem]:
        """Loops that also run without training: what they would measure then are a worker's rows only."""
        index = self.origins.index
        for loop in self.loops:
            function = index.enclosing_function(loop.loop)
            if function is None or not loop.takes or len(self.origins.calls_of(function)) < 2:
                continue
            params = {d for ds in index.definitions[function].values() for d in ds if d.kind == "param"}
            for step in loop.calls:
                for parent in index.ancestors(step):
                    if parent is loop.loop:
                        break
                    names = (
                        [n for n in nodes(parent.test) if isinstance(n, cst.Name)] if isinstance(parent, cst.If) else []
                    )
                    if any(d in params for n in names for d in reaching(index, n)):
                        yield Problem(
                            "TFDP010",
                            parent,
                            "this loop runs with and without training, and its batches are sharded over the workers",
                            "write the evaluation, whose batches stay whole, as a loop of its own",
                        )

    def _drawn_by_rank(self) -> Iterable[Problem]:
        """Draws of TensorFlow while training differ by rank: they must not choose the rows."""
        for loop in self.loops:
            around = (loop.loop, *loop.outer)
            for take in loop.takes:
                if take.dealt:
                    continue
                made = [take.node, *loop.arrays]
                for node in (n for m in made for n in parts(self.origins, m)):
                    api = self.origins.names.api(node.func) if isinstance(node, cst.Call) else None
                    inside = any(p in around for p in self.origins.index.ancestors(node))
                    if (api or "").startswith(_TENSORFLOW_DRAWS) and inside:
                        yield Problem(
                            "TFDP012",
                            node,
                            "TensorFlow draws here which examples come next, and its draws differ by worker",
                            "draw permutations and indices with NumPy, whose generator all workers share",
                        )


def _calls(found: Iterable[cst.CSTNode]) -> list[cst.Call]:
    return [n for n in found if isinstance(n, cst.Call)]
