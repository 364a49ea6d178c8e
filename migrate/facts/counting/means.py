"""Means over the steps of training: `total_loss / steps_per_epoch` of what a worker's own steps have added up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ..program import Origins, nodes, parts, reaching
from ..training import TrainingLoop
from .counts import Extent, StepCounts


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
        over_datasets = (loop.loop for loop in loops if loop.chains and not loop.takes)
        sums = [change for loop in over_datasets for change in self._added(loop)]
        names = dict.fromkeys(c.target.value for c in sums if isinstance(c.target, cst.Name))
        uses = (use for name in names for use in self._origins.index.names[name])
        found = (self._divisor(use) for use in uses if self._is_sum(use, sums))
        return tuple(dict.fromkeys(n for n in found if n is not None and self._counts_steps(n)))

    def _added(self, loop: cst.For | cst.While) -> Iterator[cst.AugAssign]:
        """What is added to once in each turn of a loop."""
        changes = (
            n for n in nodes(loop.body) if isinstance(n, cst.AugAssign) and isinstance(n.operator, cst.AddAssign)
        )
        return (n for n in changes if next(iter(self._origins.index.loops_around(n)), None) is loop)

    def _is_sum(self, use: cst.Name, sums: Collection[cst.AugAssign]) -> bool:
        return any(d.value is each for d in reaching(self._origins.index, use) for each in sums)

    def _divisor(self, use: cst.CSTNode) -> cst.Name | None:
        """`n` of `total / n`, `total.numpy() / n` and `float(total) / n`."""
        below = use
        for above in self._origins.index.ancestors(use):
            if isinstance(above, cst.BinaryOperation):
                divides = isinstance(above.operator, cst.Divide) and above.left is below
                return above.right if divides and isinstance(above.right, cst.Name) else None
            if not isinstance(above, cst.Attribute | cst.Call | cst.Arg):
                return None
            below = above
        return None

    def _counts_steps(self, name: cst.Name) -> bool:
        """Whether a number is one by which training loops are bounded, or a length of the data."""
        if self._numbers.extent(name) is not Extent.WHOLE:
            return False
        return set(reaching(self._origins.index, name)) in self._divided or any(
            isinstance(n, cst.Call) and self._origins.names.api(n.func) == "builtins.len"
            for n in parts(self._origins, name)
        )
