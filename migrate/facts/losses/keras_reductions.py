"""How the gradients that optimizers of fitted models take are put together: averaged, or added up."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from ..keras import FittedOptimizer, Given, KerasAveraging
from ..program import Origins, Problem
from ..rates import Rate, Rates
from .batch_values import Reduction
from .keras_losses import KerasLosses
from .tape_reductions import Reductions, adds_up


class KerasReductions:
    """Answers for the optimizers of fitted models, and for those that `minimize`."""

    def __init__(
        self, origins: Origins, averaging: KerasAveraging, losses: KerasLosses, reductions: Reductions
    ) -> None:
        self._origins, self._averaging, self._reductions = origins, averaging, reductions
        self.losses = losses
        self.problems = self._judged()  # at once: what divides losses, and what they share, is found on the way

    @cached_property
    def summed(self) -> frozenset[Given]:
        """The optimizers whose gradients are added up: of losses that are sums over the batch."""
        return frozenset(u.given for u in self._averaging.optimizers if self._sums(u))

    def keeps(self, rate: Rate) -> bool:
        """Whether a rate stays what it is: the gradients of a sum grow with the batch themselves."""
        return rate.place in self._unscaled

    @cached_property
    def _unscaled(self) -> set[cst.BaseExpression]:
        rates = Rates(self._origins)
        found = [f for given in self.summed for f in rates.of_given(given)]
        return {f.place for f in found if isinstance(f, Rate)}

    def _sums(self, update: FittedOptimizer) -> bool:
        if update.compiled is not None:
            return self.losses.of(update.compiled).reduction is Reduction.SUM
        return any(g in self._reductions.summed for g in update.gradients)

    def _judged(self) -> tuple[Problem, ...]:
        """Losses for which no way of combining gradients is exact, and optimizers that take both kinds."""
        compiles = dict.fromkeys(u.compiled for u in self._averaging.optimizers if u.compiled is not None)
        found = [p for c in compiles if (p := self.losses.problem(c)) is not None]
        for given in self.summed:
            others = [u for u in self._averaging.optimizers if u.given == given and not self._sums(u)]
            mixed = [g for u in self._averaging.optimizers if u.given == given for g in u.gradients]
            place = given.value or given.call
            if place is not None and (others or any(g not in self._reductions.summed for g in mixed)):
                reason = "this optimizer takes gradients of sums and of means over the batch: no one rate fits both"
                found.append(Problem("TFDP090", place, reason, "divide the sum by the number of examples"))
        return (*dict.fromkeys(found), *self._wrong())

    def _wrong(self) -> list[Problem]:
        """Optimizers that are averaged already, in the other way."""
        found = []
        for update in self._averaging.updates:
            call = update.given.value
            if not update.given.done or not isinstance(call, cst.Call):
                continue
            adds = adds_up(self._origins, call)
            if adds is not self._sums(update):
                reason = f"the gradients of this loss are {'added up' if adds else 'averaged'} over the workers"
                found.append(Problem("TFDP090", call, reason, "op=dp.Sum goes with a sum, dp.Average with a mean"))
        return found
