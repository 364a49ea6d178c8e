"""Sums over a worker's own steps, and what they are divided by: in `total_loss / steps`, and where they decide."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ..program import Origins, nodes, parts, reaching
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
