"""How the workers' gradients of each trained loss are put together: averaged, added up, or not at all."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ..program import Origins, Problem, Unknown, argument
from ..rates import Rate, Rates
from ..training import Gradient
from .batch_values import Reduction
from .causes import NOT_KNOWN
from .loss import Losses

_NEXT = "use tf.reduce_mean over the examples, or a Keras loss object with its default reduction"
_BOTH = "this optimizer takes gradients of sums and of means over the batch: no one learning rate fits both"
_DIVIDE = "divide the sum by the number of examples, `tf.reduce_sum(…) / batch_size`"


class Reductions:
    """Answers for the trained gradients of a file."""

    def __init__(self, origins: Origins, losses: Losses, trained: Iterable[Gradient]) -> None:
        self._origins = origins
        self.losses = losses
        self._trained = tuple(trained)
        self._causes: dict[Gradient, Unknown | None] = {}
        self._found = self._classified()
        if (again := self._classified()) != self._found:  # sums that one loss shares are another one's too
            self._found = {g: again[g] if again[g] is self._found[g] else Reduction.UNKNOWN for g in again}
        self.summed = frozenset(g for g in self._trained if self._found[g] in {Reduction.SUM, Reduction.PER_EXAMPLE})
        self._unscaled = self._rates(self.summed)

    def _classified(self) -> dict[Gradient, Reduction]:
        found = {}
        for gradient in self._trained:
            if gradient.target is not None:
                found[gradient] = self.losses.of_trained(gradient.target)
                self._causes[gradient] = self.losses.cause
        return {g: found.get(g, Reduction.UNKNOWN) for g in self._trained}

    def _rates(self, gradients: Iterable[Gradient]) -> set[cst.CSTNode]:
        """Where the rates are with which these gradients are applied."""
        return {rate.place for rate in Rates(self._origins).of(tuple(gradients))[0]}

    def keeps(self, rate: Rate) -> bool:
        """Whether a rate stays what it is: the gradients of a sum grow with the batch themselves."""
        return rate.place in self._unscaled

    def problems(self) -> tuple[Problem, ...]:
        """Losses for which no way of combining gradients is exact."""
        found = [p for g in self._trained if (p := self._of_loss(g)) is not None]
        both = self._unscaled & self._rates(g for g in self._trained if g not in self.summed)
        found += [Problem("TFDP090", place, _BOTH, _DIVIDE) for place in both]
        return tuple(found)

    def _of_loss(self, gradient: Gradient) -> Problem | None:
        place, kind = gradient.target or gradient.call, self._found[gradient]
        if kind not in {Reduction.MEAN, *(self._found[g] for g in self.summed)}:
            if kind is Reduction.UNKNOWN:
                index, causes = self._origins.index, self._causes.get(gradient)
                return Problem.since(index, "TFDP090", place, NOT_KNOWN, causes, _NEXT)
            reason = f"this loss is {kind.value}; averaging gradients is exact only for a mean over the batch"
            return Problem("TFDP090", place, reason, _NEXT)
        if gradient.wrapped and not gradient.minimized and self._adds_up(gradient) is not (gradient in self.summed):
            word = "added up" if self._adds_up(gradient) else "averaged"
            reason = f"this loss is {kind.value}, and its gradients are {word} over the workers"
            return Problem("TFDP090", place, reason, "op=dp.Sum goes with a sum, dp.Average with a mean")
        return None

    def _adds_up(self, gradient: Gradient) -> bool:
        """Whether a wrapped tape has `op=dp.Sum`."""
        made = [o.node for o in self._origins.of(gradient.tape) if isinstance(o.node, cst.Call)]
        wraps = [m for m in made if self._origins.called(m) == "tfdp.runtime.DistributedGradientTape"]
        given = [m for m in wraps if argument(m, "op") is not None]
        return bool(given) and all(adds_up(self._origins, m) for m in given)


def adds_up(origins: Origins, wrapper: cst.Call) -> bool:
    """Whether what averages gradients is told to add them up."""
    op = argument(wrapper, "op")
    return op is not None and origins.names.api(op.value) == "tfdp.runtime.Sum"
