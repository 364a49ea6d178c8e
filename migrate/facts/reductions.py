"""How the workers' gradients of each trained loss are put together: averaged, added up, or not at all."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from tfdp.migrate.facts.flow import within
from tfdp.migrate.facts.gradients import Gradient
from tfdp.migrate.facts.losses import Losses, Reduction
from tfdp.migrate.facts.origins import Origins, argument
from tfdp.migrate.facts.problem import Problem
from tfdp.migrate.facts.rates import Rate, Rates

_SUM = "tfdp.runtime.Sum"
_WRAPPER = "tfdp.runtime.DistributedGradientTape"
_NEXT = "use tf.reduce_mean over the examples, or a Keras loss object with its default reduction"


class Reductions:
    """Answers for the trained gradients of a file."""

    def __init__(self, origins: Origins, losses: Losses, trained: Iterable[Gradient]) -> None:
        self._origins = origins
        self.losses = losses
        self._trained = tuple(trained)
        self._found = {g: losses.reduction(g.target) if g.target is not None else Reduction.UNKNOWN for g in trained}
        self.summed = frozenset(g for g in self._trained if self._found[g] in {Reduction.SUM, Reduction.PER_EXAMPLE})
        self._unscaled = self._rates(self.summed)

    def _rates(self, gradients: Iterable[Gradient]) -> set[cst.CSTNode]:
        """Where the rates are with which these gradients are applied."""
        return {rate.place for rate in Rates(self._origins).of(tuple(gradients))[0]}

    def keeps(self, rate: Rate) -> bool:
        """Whether a rate stays what it is: the gradients of a sum grow with the batch themselves."""
        return rate.place in self._unscaled

    @property
    def shares(self) -> tuple[cst.BaseExpression, ...]:
        """Divisors that are sums over the batch of the data alone: each worker's has to become the mean of all."""
        return tuple(d for d in self.losses.shares if not self._is_shared(d))

    def _is_shared(self, divisor: cst.BaseExpression) -> bool:
        return isinstance(divisor, cst.Call) and self._origins.names.api(divisor.func) == "tfdp.runtime.allreduce"

    def problems(self) -> tuple[Problem, ...]:
        """Losses for which no way of combining gradients is exact."""
        found = [p for g in self._trained if (p := self._of_loss(g)) is not None]
        both = self._unscaled & self._rates(g for g in self._trained if g not in self.summed)
        found += [
            Problem(
                "TFDP090",
                place,
                "this optimizer takes gradients of sums and of means over the batch: no one learning rate fits both",
                "divide the sum by the number of examples, `tf.reduce_sum(…) / batch_size`",
            )
            for place in both
        ]
        return (*found, *self._misplaced())

    def _of_loss(self, gradient: Gradient) -> Problem | None:
        place, kind = gradient.target or gradient.call, self._found[gradient]
        if kind not in {Reduction.MEAN, *(self._found[g] for g in self.summed)}:
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
        wraps = [m for m in made if self._origins.names.api(m.func) == _WRAPPER]
        given = [a.value for m in wraps if (a := argument(m, "op")) is not None]
        return bool(given) and all(self._origins.names.api(v) == _SUM for v in given)

    def _misplaced(self) -> list[Problem]:
        """Shared divisors in functions that are called for other reasons too, where not every worker may come."""
        found = []
        for divisor in self.shares:
            function = self._origins.index.enclosing_function(divisor)
            if function is None or any(within(self._origins.index, g.call, function) for g in self._trained):
                continue
            if all(self._leads_to_gradient(c, ()) for c in self._origins.calls_of(function)):
                continue
            reason = "this divisor differs by worker, and a loss that is computed outside training too cannot share it"
            found.append(Problem("TFDP090", divisor, reason, "use a loss function of its own for the training step"))
        return found

    def _leads_to_gradient(self, node: cst.CSTNode, seen: tuple[cst.CSTNode, ...]) -> bool:
        """Whether a call is in a function that takes a trained gradient, or in one that only such functions call."""
        function = self._origins.index.enclosing_function(node)
        if function is None:
            return any(self._origins.index.loops_around(g.call) for g in self._trained) and self._beside(node)
        if function in seen:
            return True
        if any(within(self._origins.index, g.call, function) for g in self._trained):
            return True
        callers = self._origins.calls_of(function)
        return bool(callers) and all(self._leads_to_gradient(c, (*seen, function)) for c in callers)

    def _beside(self, node: cst.CSTNode) -> bool:
        """Whether the node runs in the innermost loop in which a trained gradient is taken."""
        index = self._origins.index
        loops = {loops[0] for g in self._trained if (loops := index.loops_around(g.call))}
        around = index.loops_around(node)
        return bool(around) and around[0] in loops
