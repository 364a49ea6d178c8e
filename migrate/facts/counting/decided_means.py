"""Sums over a worker's own steps that decide something: whether they are divided by what they cover."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ..program import Origins, Problem, nodes, parts, reaching, within
from ..training import TrainingLoop
from .counts import Extent, StepCounts

_SCALES = 10  # smaller literals are factors of a loss, not numbers of steps


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
        sums = [n for n in made if isinstance(n, cst.AugAssign) and isinstance(n.operator, cst.AddAssign)]
        sums = [n for n in sums if any(within(self._origins.index, n, loop.loop.body) for loop in self._loops)]
        divisors = list(_divisors(made))
        counted = [d for d in divisors if self._numbers.extent(d) is not Extent.WHOLE]
        if not sums or counted:
            return None
        if any(self._by_rows(s) for s in sums):
            reason = "this adds up what a worker's own rows make, and divides it by a number of all workers' examples"
            return Problem(
                "TFDP053",
                value,
                reason,
                "add the losses themselves up, count the steps, `count += 1`, and divide by the count",
            )
        over_datasets = [loop.loop.body for loop in self._loops if loop.chains and not loop.takes]
        own = any(within(self._origins.index, s, body) for s in sums for body in over_datasets)
        whole = [d for d in divisors if d not in known and not _is_scale(d)]
        if batch != "per-worker" or not own or not whole:
            return None
        reason = "this is a sum over a worker's own steps, divided by a number of all workers' steps or examples"
        return Problem("TFDP053", value, reason, "count the steps, `count += 1`, and divide by the count")

    def _by_rows(self, added: cst.AugAssign) -> bool:
        """`total += loss * x.shape[0]`, for what a training loop gives."""
        factors = [
            n
            for product in nodes(added.value)
            if isinstance(product, cst.BinaryOperation) and isinstance(product.operator, cst.Multiply)
            for side in (product.left, product.right)
            for n in nodes(side)
        ]
        return any(self._measures(n) for n in factors)

    def _measures(self, node: cst.CSTNode) -> bool:
        """`len(x)`, `x.shape[0]`, `tf.shape(x)[0]`."""
        called = isinstance(node, cst.Call) and self._origins.names.api(node.func) in {
            "builtins.len",
            "tensorflow.shape",
        }
        measured = called or (isinstance(node, cst.Attribute) and node.attr.value == "shape")
        names = [n for n in nodes(node) if isinstance(n, cst.Name)] if measured else []
        loops = {loop.loop for loop in self._loops}
        return any(d.kind == "for" and d.statement in loops for n in names for d in reaching(self._origins.index, n))


def _divisors(made: Iterable[cst.CSTNode]) -> Iterator[cst.BaseExpression]:
    for node in made:
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
            yield node.right
        elif isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.DivideAssign):
            yield node.value


def _is_scale(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer | cst.Float) and float(node.evaluated_value) < _SCALES
