"""How many steps a training loop takes: `range(n)`, `while step < n`, `if step >= n: break`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ..apis import SPANS
from ..data import Datasets, endless
from ..program import ITER, Origins, Problem, argument, before, reaching, within
from ..training import TrainingLoop, loop_exits

_BELOW = (cst.LessThan, cst.NotEqual)
_REACHED = (cst.GreaterThanEqual, cst.Equal)
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
            around = {loop.loop, *loop.outer}
            ends = not endless(c for other in self._training if other.loop in around for c in other.chains)
            found += self._of_header(loop, ends)
            found += self._of_exits(loop, ends)
        return (*_merged(f for f in found if isinstance(f, StepBound)), *(f for f in found if isinstance(f, Problem)))

    # --- the loop's own header ----------------------------------------------------------------------------------------

    def _of_header(self, loop: TrainingLoop, ends: bool) -> Iterator[StepBound | Problem]:
        step_loop = self._step_loop(loop)
        for body in (loop.loop, *loop.outer):
            if isinstance(body, cst.While):
                yield from self._of_while(body, loop, step_loop, ends)
            elif body is step_loop and loop.taken and any(body in o.outer and not o.taken for o in self._training):
                yield self._not_counted(body)  # its runs are epochs of another loop in it
            elif body is step_loop and loop.taken:
                yield from self._of_range(body, body.iter, ends)
            elif body is loop.loop:
                for part in self._zipped(body.iter):
                    yield from self._of_range(body, part, down=False)

    def _step_loop(self, loop: TrainingLoop) -> _Loop:
        """The loop each of whose runs is one step: the innermost one that holds all that is trained in its nest."""
        mine = [loop.loop, *loop.outer]
        nests = [{each.loop, *each.outer} for each in self._training]
        held = (body for body in mine if all(body in nest for nest in nests if not nest.isdisjoint(mine)))
        return next(held, loop.loop)

    def _zipped(self, iterated: cst.BaseExpression) -> list[cst.BaseExpression]:
        call = self._datasets.unwrap(iterated)
        if not isinstance(call, cst.Call) or self._origins.called(call) != "builtins.zip":
            return []
        return [p for a in call.args if self._origins.called(p := self._datasets.unwrap(a.value)) in SPANS]

    def _of_range(self, loop: cst.For, iterated: cst.BaseExpression, down: bool) -> Iterator[StepBound | Problem]:
        call = self._datasets.unwrap(iterated)
        plain = isinstance(call, cst.Call) and bool(call.args) and not any(a.star or a.keyword for a in call.args)
        if not isinstance(call, cst.Call) or not plain or self._origins.called(call) not in SPANS:
            yield self._not_counted(loop)
            return
        numbers = [_number(a.value) for a in call.args]
        start = numbers[0] if len(numbers) > 1 else 0
        if start is None or numbers[2:] not in ([], [1]):
            yield Uncounted("TFDP011", call, "cannot tell how many steps this range has", "use range(steps)")
            return
        yield StepBound(call.args[min(1, len(numbers) - 1)].value, -start, down)

    def _not_counted(self, loop: cst.For) -> Problem:
        reason = "cannot tell how many steps this loop takes; they have to be divided by the number of workers"
        return Uncounted("TFDP011", loop, reason, "use `for step in range(steps)`")

    # --- counters -----------------------------------------------------------------------------------------------------

    def _of_while(
        self, body: cst.While, loop: TrainingLoop, step_loop: _Loop, down: bool
    ) -> Iterator[StepBound | Problem]:
        if self._origins.names.api(body.test) == "builtins.True" or _number(body.test) == 1:
            return
        bound = self._compared(body.test, _BELOW, cst.LessThanEqual)
        if bound is None:
            reason = "cannot tell after how many steps the condition of this while loop around training ends it"
            next_step = "use `for step in range(steps)`, or count the steps in a variable of the loop"
            yield Problem("TFDP011", body, reason, f"{next_step}: `while step < steps`")
        elif self._counts_steps(bound[0], loop, step_loop):
            yield StepBound(bound[1], bound[2] - bound[0].start, down)

    def _counts_steps(self, counter: _Counter, loop: TrainingLoop, step_loop: _Loop) -> bool:
        """Whether a counter grows with each step; else it counts epochs, whose number stays."""
        return counter.loop is (step_loop if loop.taken else loop.loop)

    def _compared(
        self, test: cst.BaseExpression, plain: tuple[type, ...], one_more: type
    ) -> tuple[_Counter, cst.BaseExpression, int] | None:
        """Counter, bound and what the operator adds to it."""
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.left, cst.Name):
            return None
        operator, right = test.comparisons[0].operator, test.comparisons[0].comparator
        counter = self._counter(test.left) if isinstance(operator, (*plain, one_more)) else None
        return (counter, right, int(isinstance(operator, one_more))) if counter is not None else None

    def _counter(self, name: cst.Name) -> _Counter | None:
        """A loop's own counter, of `range` or `enumerate`, or a variable that is set once and grows by one."""
        index = self._index
        found = reaching(index, name)
        if len(found) == 1 and found[0].kind == "for" and isinstance(found[0].statement, cst.For):
            loop = found[0].statement
            start = self._first(loop.iter, found[0].path)
            return _Counter(loop, start, None) if start is not None else None
        growing = [d for d in found if isinstance(d.statement, cst.AugAssign)]
        found = list(dict.fromkeys([*found, *(b for d in growing for b in before(index, d))]))
        growths = [d.statement for d in found if isinstance(d.statement, cst.AugAssign)]
        starts = [_number(d.value) for d in found if d.kind == "assign" and not d.path]
        if len(found) != 2 or len({d.scope for d in found}) != 1 or len(growths) != 1 or len(starts) != 1:
            return None
        growth, start = growths[0], starts[0]
        around = index.loops_around(growth)[:1]
        by_one = isinstance(growth.operator, cst.AddAssign) and _number(growth.value) == 1
        every = index.definitions[found[0].scope][name.value]
        if start is None or not by_one or not around or self._holder(growth) is not around[0].body:
            return None
        alone = [within(index, d.statement, around[0]) for d in every].count(True) == 1
        return _Counter(around[0], start, growth) if alone else None

    def _holder(self, statement: cst.CSTNode) -> cst.CSTNode | None:
        """The body that a simple statement stands in."""
        line = self._index.parents[statement]
        return self._index.parents.get(line) if isinstance(line, cst.SimpleStatementLine) else line

    def _first(self, iterated: cst.BaseExpression, path: tuple[int, ...]) -> int | None:
        """The first value of a loop's counter."""
        api = self._origins.called(iterated)
        args = iterated.args if isinstance(iterated, cst.Call) else ()
        if isinstance(iterated, cst.Call) and api == "builtins.enumerate":
            start = argument(iterated, "start", 1)
            known = _number(start.value) if start is not None else 0
            return known if path == (ITER, 0) else None
        if api == "builtins.zip":
            return self._first(args[path[1]].value, (ITER,)) if len(path) == 2 and path[1] < len(args) else None
        if api in SPANS:
            first = {1: 0, 2: _number(args[0].value)}.get(len(args)) if args else None
            return first if path == (ITER,) else None
        inside = self._datasets.iterated(iterated)
        return self._first(inside, path) if inside is not None else None

    # --- breaks -------------------------------------------------------------------------------------------------------

    def _of_exits(self, loop: TrainingLoop, ends: bool) -> Iterator[StepBound | Problem]:
        reason = "the training loop can end early here; cannot tell whether all workers end it at the same step"
        next_step = "bound the loop by .take(steps) on the dataset, or decide by dp.agree(…), which asks rank 0"
        for exit_ in loop_exits(loop):
            if not self._at_the_end_of_data(exit_):
                bound = self._of_exit(exit_, loop, loop.taken and ends)
                yield bound if bound is not None else Problem("TFDP011", exit_, reason, next_step)

    def _at_the_end_of_data(self, exit_: cst.CSTNode) -> bool:
        """Whether the loop ends there because its data do, which all ranks have equally many of."""
        handler = next((n for n in self._index.ancestors(exit_) if isinstance(n, cst.ExceptHandler)), None)
        kind = handler.type if handler is not None else None
        kinds = [e.value for e in kind.elements] if isinstance(kind, cst.Tuple) else [kind]
        names = {self._origins.names.api(k) if k is not None else None for k in kinds}
        return names <= {"builtins.StopIteration", "tensorflow.errors.OutOfRangeError"}

    def _of_exit(self, exit_: cst.CSTNode, loop: TrainingLoop, down: bool) -> StepBound | None:
        """`if step >= n: break` directly in the loop of which `step` is the counter."""
        holder = self._holder(exit_)
        test = self._index.parents[holder] if holder is not None else None
        if not isinstance(test, cst.If) or test.orelse is not None or holder is not test.body:
            return None
        compared = self._compared(test.test, _REACHED, cst.GreaterThan)
        if compared is None or not self._counts_steps(compared[0], loop, self._step_loop(loop)):
            return None
        counter, bound, one_more = compared
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
        return StepBound(bound, one_more + int(steps[-1]) - int(grown) - counter.start, down)


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
