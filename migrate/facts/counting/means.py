"""Sums over a worker's own steps, and what they are divided by: in `total_loss / steps`, and where they decide."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ..apis import COUNTS
from ..program import Origins, Problem, nodes, parts, reaching, within
from ..training import TrainingLoop
from .counts import Extent, StepCounts

_SCALES = 10  # smaller literals are factors of a loss, not numbers of steps


class StepMeans:
    """Finds numbers of steps, those of the one-process script, by which sums over a worker's steps are divided.

    divided: the numbers of steps of training loops that are divided by the workers.
    """

    def __init__(self, origins: Origins, numbers: StepCounts, divided: Iterable[cst.CSTNode]) -> None:
        self._origins, self._numbers = origins, numbers
        names = (n for value in divided for n in nodes(value) if isinstance(n, cst.Name))
        self._divided = [found for name in names if (found := set(reaching(origins.index, name)))]

    def of(self, loops: Iterable[TrainingLoop]) -> tuple[cst.Name, ...]:
        """The numbers, as they stand to the right of `/`; of loops over datasets."""
        index = self._origins.index
        changes = ((n, loop) for loop in _over_datasets(loops) for n in _sums(nodes(loop.body)))
        sums = {change for change, loop in changes if index.loops_around(change)[:1] == [loop]}  # once in each turn
        divisions = (
            n for n in index.order if isinstance(n, cst.BinaryOperation) and isinstance(n.operator, cst.Divide)
        )
        numbers = (n.right for n in divisions if sums and self._is_one(n.left, sums))
        return tuple(n for n in numbers if isinstance(n, cst.Name) and self._counts_steps(n))

    def _is_one(self, node: cst.BaseExpression, sums: Collection[cst.CSTNode]) -> bool:
        """`total`, `total.numpy()`, `float(total)`."""
        names = (n for n in nodes(node) if isinstance(n, cst.Name))
        plain = isinstance(node, cst.Name | cst.Attribute | cst.Call)
        return plain and any(d.value in sums for n in names for d in reaching(self._origins.index, n))

    def _counts_steps(self, name: cst.Name) -> bool:
        """Whether a number is one by which training loops are bounded, or a length of the data."""
        if self._numbers.extent(name) is not Extent.WHOLE:
            return False
        measured = any(self._origins.called(n) == "builtins.len" for n in parts(self._origins, name))
        return measured or set(reaching(self._origins.index, name)) in self._divided


class DecidedMeans:
    """Asks of values that are averaged over the workers whether the averages are means over all examples."""

    def __init__(self, origins: Origins, numbers: StepCounts, loops: Iterable[TrainingLoop]) -> None:
        self._origins, self._numbers, self._loops = origins, numbers, tuple(loops)

    def problems(
        self, values: Iterable[cst.BaseExpression], known: Collection[cst.CSTNode], batch: str
    ) -> list[Problem]:
        """known: numbers of steps that are divided by the workers where a sum is divided by them."""
        return [p for value in values if (p := self._problem(value, known, batch)) is not None]

    def _problem(self, value: cst.BaseExpression, known: Collection[cst.CSTNode], batch: str) -> Problem | None:
        made = parts(self._origins, value)
        sums = [n for n in _sums(made) if any(within(self._origins.index, n, each.loop.body) for each in self._loops)]
        divisors = list(_divisors(made))
        counted = [d for d in divisors if self._numbers.extent(d) is not Extent.WHOLE]
        if not sums or counted:
            return None
        if any(self._by_rows(s) for s in sums):
            reason = "this adds up what a worker's own rows make, and divides it by a number of all workers' examples"
            next_step = "add the losses themselves up, count the steps, `count += 1`, and divide by the count"
            return Problem("TFDP053", value, reason, next_step)
        own = any(within(self._origins.index, s, loop.body) for s in sums for loop in _over_datasets(self._loops))
        whole = [d for d in divisors if d not in known and not _is_scale(d)]
        if batch != "per-worker" or not own or not whole:
            return None
        reason = "this is a sum over a worker's own steps, divided by a number of all workers' steps or examples"
        return Problem("TFDP053", value, reason, "count the steps, `count += 1`, and divide by the count")

    def _by_rows(self, added: cst.AugAssign) -> bool:
        """`total += loss * x.shape[0]`, for what a training loop gives."""
        products = (n for n in nodes(added.value) if isinstance(n, cst.BinaryOperation))
        factors = (n for product in products if isinstance(product.operator, cst.Multiply) for n in nodes(product))
        return any(self._measures(n) for n in factors)

    def _measures(self, node: cst.CSTNode) -> bool:
        """`len(x)`, `x.shape[0]`, `tf.shape(x)[0]`."""
        shape = isinstance(node, cst.Attribute) and node.attr.value == "shape"
        measured = shape or self._origins.called(node) in COUNTS
        names = [n for n in nodes(node) if isinstance(n, cst.Name)] if measured else []
        loops = {loop.loop for loop in self._loops}
        return any(d.kind == "for" and d.statement in loops for n in names for d in reaching(self._origins.index, n))


def _sums(made: Iterable[cst.CSTNode]) -> Iterator[cst.AugAssign]:
    """What is added to something."""
    return (n for n in made if isinstance(n, cst.AugAssign) and isinstance(n.operator, cst.AddAssign))


def _over_datasets(loops: Iterable[TrainingLoop]) -> list[cst.For | cst.While]:
    return [loop.loop for loop in loops if loop.chains and not loop.takes]


def _divisors(made: Iterable[cst.CSTNode]) -> Iterator[cst.BaseExpression]:
    for node in made:
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
            yield node.right
        elif isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.DivideAssign):
            yield node.value


def _is_scale(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer | cst.Float) and float(node.evaluated_value) < _SCALES
