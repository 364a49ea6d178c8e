"""How many steps a training loop takes: `range(n)`, `while step < n`, `if step >= n: break`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ..data import Chain, Datasets, endless
from ..program import ITER, Origins, Problem, argument, reaching, within
from ..training import TrainingLoop, loop_exits

_RANGES = frozenset({"builtins.range", "tensorflow.range", "numpy.arange", "tqdm.trange", "tqdm.auto.trange"})
_BELOW = (cst.LessThan, cst.NotEqual)
_REACHED = (cst.GreaterThanEqual, cst.Equal)
_ENDS = frozenset({"builtins.StopIteration", "tensorflow.errors.OutOfRangeError"})
_TIGHT = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power)
_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)
_Loop = cst.For | cst.While


@dataclass(frozen=True)
class StepBound:
    """An expression with which steps are counted: the loop takes as many steps as it says, and `more`.

    `down` says that the data may end: a number of steps is then rounded down, so that it never asks for more.
    """

    node: cst.BaseExpression
    more: int = 0
    down: bool = False


class Uncounted(Problem):
    """It keeps a script from being migrated only where steps have to be divided."""


@dataclass(frozen=True)
class _Counter:
    """A number that grows by one with each run of a loop's body.

    Its value at a place is the number of finished runs, plus `start`, plus one after the statement `growth`.
    """

    loop: _Loop
    start: int
    growth: cst.CSTNode | None


class StepBounds:
    """Finds the numbers of steps of training loops, and what ends them that is not understood."""

    def __init__(self, origins: Origins, datasets: Datasets, training: tuple[TrainingLoop, ...]) -> None:
        self._origins, self._datasets, self._training = origins, datasets, training
        self._index = origins.index

    def find(self) -> tuple[StepBound | Problem, ...]:
        """Each expression that counts steps, once, and a Problem for each end of a loop that is not understood."""
        found: list[StepBound | Problem] = []
        for loop in self._training:
            found += self._of_header(loop)
            found += self._of_exits(loop)
        return (*_merged(f for f in found if isinstance(f, StepBound)), *(f for f in found if isinstance(f, Problem)))

    # --- the loop's own header ----------------------------------------------------------------------------------------

    def _of_header(self, loop: TrainingLoop) -> Iterator[StepBound | Problem]:
        step_loop = self._step_loop(loop)
        down = not endless(self._data_of(loop))
        for body in (loop.loop, *loop.outer):
            if isinstance(body, cst.While):
                yield from self._of_while(body, loop, step_loop, down)
            elif body is step_loop and loop.taken and any(body in o.outer and not o.taken for o in self._training):
                yield self._not_counted(body)  # its runs are epochs of another loop in it
            elif body is step_loop and loop.taken:
                yield from self._of_range(body, body.iter, down)
            elif body is loop.loop:
                for part in self._zipped(body.iter):
                    yield from self._of_range(body, part, down=False)

    def _data_of(self, loop: TrainingLoop) -> list[Chain]:
        bodies = {loop.loop, *loop.outer}
        return [c for other in self._training if other.loop in bodies for c in other.chains]

    def _step_loop(self, loop: TrainingLoop) -> _Loop:
        """The loop each of whose runs is one step: the innermost one that holds all that is trained in its nest."""
        mine = [loop.loop, *loop.outer]
        for body in mine:
            if all(body in (o.loop, *o.outer) for o in self._training if {o.loop, *o.outer} & set(mine)):
                return body
        return loop.loop

    def _zipped(self, iterated: cst.BaseExpression) -> list[cst.BaseExpression]:
        call = self._unwrapped(iterated)
        if not isinstance(call, cst.Call) or self._origins.names.api(call.func) != "builtins.zip":
            return []
        parts = [self._unwrapped(a.value) for a in call.args]
        return [p for p in parts if isinstance(p, cst.Call) and self._origins.names.api(p.func) in _RANGES]

    def _unwrapped(self, node: cst.BaseExpression) -> cst.BaseExpression:
        return self._datasets.unwrap(node)

    def _of_range(self, loop: cst.For, iterated: cst.BaseExpression, down: bool) -> Iterator[StepBound | Problem]:
        call = self._unwrapped(iterated)
        ranges = isinstance(call, cst.Call) and self._origins.names.api(call.func) in _RANGES
        if not isinstance(call, cst.Call) or not ranges or any(a.star or a.keyword for a in call.args):
            yield self._not_counted(loop)
            return
        first, last = (call.args[0].value if len(call.args) > 1 else None), call.args[min(1, len(call.args) - 1)].value
        start = _number(first) if first is not None else 0
        if start is None or (len(call.args) > 2 and _number(call.args[2].value) != 1):
            yield Uncounted("TFDP011", call, "cannot tell how many steps this range has", "use range(steps)")
            return
        yield StepBound(last, -start, down)

    def _not_counted(self, loop: cst.For) -> Problem:
        return Uncounted(
            "TFDP011",
            loop,
            "cannot tell how many steps this loop takes; they have to be divided by the number of workers",
            "use `for step in range(steps)`",
        )

    # --- counters -----------------------------------------------------------------------------------------------------

    def _of_while(
        self, body: cst.While, loop: TrainingLoop, step_loop: _Loop, down: bool
    ) -> Iterator[StepBound | Problem]:
        if self._origins.names.api(body.test) == "builtins.True" or _number(body.test) == 1:
            return
        bound = self._compared(body.test, _BELOW, cst.LessThanEqual)
        counter = self._counter(bound[0]) if bound is not None else None
        if bound is None or counter is None:
            yield Problem(
                "TFDP011",
                body,
                "cannot tell after how many steps the condition of this while loop around training ends it",
                "use `for step in range(steps)`, or count the steps in a variable of the loop: `while step < steps`",
            )
        elif self._counts_steps(counter, loop, step_loop):
            yield StepBound(bound[1], bound[2] - counter.start, down)

    def _counts_steps(self, counter: _Counter, loop: TrainingLoop, step_loop: _Loop) -> bool:
        """Whether a counter grows with each step; else it counts epochs, whose number stays."""
        return counter.loop is (step_loop if loop.taken else loop.loop)

    def _compared(
        self, test: cst.BaseExpression, plain: tuple[type, ...], one_more: type
    ) -> tuple[cst.Name, cst.BaseExpression, int] | None:
        """Counter, bound and what the operator adds to it."""
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.left, cst.Name):
            return None
        operator, right = test.comparisons[0].operator, test.comparisons[0].comparator
        if isinstance(operator, plain):
            return test.left, right, 0
        return (test.left, right, 1) if isinstance(operator, one_more) else None

    def _counter(self, name: cst.Name) -> _Counter | None:
        """A loop's own counter, of `range` or `enumerate`, or a variable that is set once and grows by one."""
        definitions = reaching(self._index, name)
        if len(definitions) == 1 and definitions[0].kind == "for" and isinstance(definitions[0].statement, cst.For):
            loop = definitions[0].statement
            start = self._first(loop.iter, definitions[0].path)
            return _Counter(loop, start, None) if start is not None else None
        for growing in [d.statement for d in definitions if isinstance(d.statement, cst.AugAssign)]:
            before = reaching(self._index, self._index.probe(name.value, growing))
            definitions = list(dict.fromkeys([*definitions, *before]))
        if len({d.scope for d in definitions}) != 1 or len(definitions) != 2:
            return None
        grown = [d.statement for d in definitions if isinstance(d.statement, cst.AugAssign)]
        set_to = [_number(d.value) for d in definitions if d.kind == "assign" and not d.path]
        if len(grown) != 1 or len(set_to) != 1 or set_to[0] is None:
            return None
        growth = grown[0]
        around = self._index.loops_around(growth)
        line = self._index.parents[growth]
        direct = bool(around) and self._index.parents.get(self._index.parents.get(line, line)) is around[0]
        if not isinstance(growth.operator, cst.AddAssign) or _number(growth.value) != 1 or not direct:
            return None
        every = self._index.definitions[definitions[0].scope][name.value]
        inside = [d for d in every if within(self._index, d.statement, around[0])]
        return _Counter(around[0], set_to[0], growth) if len(inside) == 1 else None

    def _first(self, iterated: cst.BaseExpression, path: tuple[int, ...]) -> int | None:
        """The first value of a loop's counter."""
        call = iterated
        while isinstance(call, cst.Call) and self._origins.names.api(call.func) not in _RANGES | {
            "builtins.enumerate",
            "builtins.zip",
        }:
            inside = self._datasets.iterated(call)
            if inside is None:
                return None
            call = inside
        if not isinstance(call, cst.Call):
            return None
        api = self._origins.names.api(call.func)
        if api == "builtins.enumerate" and path == (ITER, 0):
            start = argument(call, "start", 1)
            return _number(start.value) if start is not None else 0
        if api == "builtins.zip" and len(path) == 2 and path[1] < len(call.args):
            return self._first(call.args[path[1]].value, (ITER,))
        if api in _RANGES and path == (ITER,):
            return _number(call.args[0].value) if len(call.args) == 2 else 0 if len(call.args) == 1 else None
        return None

    # --- breaks -------------------------------------------------------------------------------------------------------

    def _of_exits(self, loop: TrainingLoop) -> Iterator[StepBound | Problem]:
        step_loop, down = self._step_loop(loop), loop.taken and not endless(self._data_of(loop))
        for exit_ in loop_exits(loop):
            if self._at_the_end_of_data(exit_):
                continue
            bound = self._of_exit(exit_, loop, step_loop, down)
            yield (
                bound
                if bound is not None
                else Problem(
                    "TFDP011",
                    exit_,
                    "the training loop can end early here; cannot tell whether all workers end it at the same step",
                    "bound the loop by .take(steps) on the dataset, or decide by dp.agree(…), which asks rank 0",
                )
            )

    def _at_the_end_of_data(self, exit_: cst.CSTNode) -> bool:
        """Whether the loop ends there because its data do, which all ranks have equally many of."""
        handler = next((n for n in self._index.ancestors(exit_) if isinstance(n, cst.ExceptHandler)), None)
        kinds = [handler.type] if handler is not None and handler.type is not None else []
        if len(kinds) == 1 and isinstance(kinds[0], cst.Tuple):
            kinds = [e.value for e in kinds[0].elements]
        return bool(kinds) and all(self._origins.names.api(k) in _ENDS for k in kinds)

    def _of_exit(self, exit_: cst.CSTNode, loop: TrainingLoop, step_loop: _Loop, down: bool) -> StepBound | None:
        """`if step >= n: break` directly in the loop of which `step` is the counter."""
        line = self._index.parents[exit_]
        suite = self._index.parents[line] if isinstance(line, cst.SimpleStatementLine) else line
        test = self._index.parents[suite]
        if not isinstance(test, cst.If) or test.orelse is not None or suite is not test.body:
            return None
        compared = self._compared(test.test, _REACHED, cst.GreaterThan)
        counter = self._counter(compared[0]) if compared is not None else None
        if compared is None or counter is None or not self._counts_steps(counter, loop, step_loop):
            return None
        body = counter.loop.body
        if self._index.parents[test] is not body:
            return None  # an outer loop's own break, or one under another condition
        place = list(body.body).index(test)

        def earlier(node: cst.CSTNode) -> bool | None:
            return next((i < place for i, s in enumerate(body.body) if within(self._index, node, s)), None)

        steps = [earlier(c) for c in loop.calls if within(self._index, c, body)]
        grown = earlier(counter.growth) if counter.growth is not None else False
        if not steps or steps[-1] is None or grown is None:
            return None
        more = compared[2] + int(steps[-1]) - int(grown) - counter.start
        return StepBound(compared[1], more, down)


def _merged(bounds: Iterable[StepBound]) -> Iterator[StepBound | Problem]:
    by_node: dict[cst.BaseExpression, list[StepBound]] = {}
    for bound in bounds:
        by_node.setdefault(bound.node, []).append(bound)
    for node, same in by_node.items():
        if len({b.more for b in same}) > 1:
            yield Problem("TFDP011", node, "this counts steps of several loops in different ways", "use two numbers")
        else:
            yield StepBound(node, same[0].more, any(b.down for b in same))


def counted(bound: StepBound) -> cst.BaseExpression:
    """The number itself, `steps` of `range(1, steps + 1)`."""
    node = bound.node
    sums = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract)
    return node.left if isinstance(node, cst.BinaryOperation) and sums and _number(node.right) is not None else node


def divided(
    node: cst.BaseExpression, more: int, call: Callable[[cst.BaseExpression], cst.BaseExpression]
) -> cst.BaseExpression:
    """The expression that counts `call`'s part of the steps instead: `call(n + more) - more`."""
    if more and isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract):
        known = _number(node.right)
        if known is not None and not node.lpar:  # `steps + 1` of `range(1, steps + 1)`
            known = known if isinstance(node.operator, cst.Add) else -known
            return _plus(call(_plus(node.left, known + more)), -more)
    if more and (known := _number(node)) is not None and known + more >= 0:
        return _plus(call(cst.Integer(str(known + more))), -more)
    return _plus(call(_plus(node, more)), -more)


def _plus(node: cst.BaseExpression, number: int) -> cst.BaseExpression:
    if not number:
        return node
    operator = cst.Add() if number > 0 else cst.Subtract()
    tight = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _TIGHT)
    if not node.lpar and not tight and not isinstance(node, _ATOMS):
        node = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.BinaryOperation(node, operator, cst.Integer(str(abs(number))))


def _number(node: cst.CSTNode | None) -> int | None:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = _number(node.expression)
        return -inner if inner is not None else None
    return int(node.value, 0) if isinstance(node, cst.Integer) else None
