"""NumPy's random numbers inside the model: all workers draw the same ones, and each needs those of its examples."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import libcst as cst

from ..batches import BatchSizes
from ..data import numpy_draw
from ..program import Origins, Problem, number
from . import batch_values as batch
from .batch_values import Reduction
from .loss import Losses


@dataclass(frozen=True)
class NoiseDraw:
    """A draw of one row for each example of the batch.

    size: the expression that says how many. at_hand: it counts the examples that the process has, else it is the
    script's batch size.
    """

    call: cst.Call
    size: cst.BaseExpression
    at_hand: bool


class Noise:
    """The draws among the calls that run for a trained loss.

    One whose first axis is no batch's stays: it is the same for all examples, hence for all workers.
    """

    def __init__(
        self,
        origins: Origins,
        sizes: BatchSizes,
        losses: Losses,
        reached: Iterable[cst.Call],
        taken: Collection[cst.CSTNode],
    ) -> None:
        """`taken`: what takes the batches themselves, also by indices that are drawn."""
        self._origins, self._sizes, self._losses = origins, sizes, losses
        found = [f for call in reached if call not in taken and (f := self._of(call)) is not None]
        self.draws = tuple(f for f in found if isinstance(f, NoiseDraw))
        self.problems = tuple(f for f in found if isinstance(f, Problem))

    def _of(self, call: cst.Call) -> NoiseDraw | Problem | None:
        found = numpy_draw(self._origins, call)
        parents = self._origins.index.parents
        if found is None or self._origins.called(parents.get(parents[call], call)) == "tfdp.runtime.local_rows":
            return None
        if not found.known:
            return _problem(call)
        size = found.size
        if size is None or number(size) == 1:
            return None
        if self._sizes.stands(size) or (isinstance(size, cst.Integer) and number(size) in self._sizes.literals):
            return NoiseDraw(call, size, at_hand=False)
        value = batch.UNKNOWN if self._sizes.may_stand(size) else self._losses.value(size)
        known = value.reduction is Reduction.CONSTANT and value.power == 1
        return NoiseDraw(call, size, at_hand=True) if known else _problem(call)


def _problem(call: cst.Call) -> Problem:
    return Problem(
        "TFDP013",
        call,
        "all workers draw the same numbers here, and tfdp cannot tell whether these are one row for each example of "
        "the batch",
        "give the size as `(batch_size, …)` or `(x.shape[0], …)`, or draw what goes into the model by TensorFlow, as "
        "tf.random.normal(shape) does",
    )
