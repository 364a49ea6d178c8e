"""How each fitted model's gradients are averaged: by its optimizers, or by the tapes of its own `train_step`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, Problem, Unknown, unfollowed
from ..training import Gradient
from .averaged import Given, Optimizers
from .fits import Compile, Fit
from .train_steps import KerasSteps

_COMPILED = "compile the model in this file, with an optimizer that is made in this file"


@dataclass(frozen=True)
class FittedOptimizer:
    """An optimizer of a fitted model: where it takes the averaging, and the gradients of the file that it is given.

    `compiled` is the call whose loss Keras' own step takes gradients of; None for a model's own step. `taped`: it is
    the tapes of those gradients that are averaged.
    """

    given: Given
    compiled: Compile | None
    gradients: tuple[Gradient, ...] = ()
    taped: bool = False


class KerasAveraging:
    """Answers for the fitted models of a file."""

    def __init__(
        self, origins: Origins, fits: tuple[Fit, ...], steps: KerasSteps, minimized: tuple[Gradient, ...]
    ) -> None:
        """`minimized`: gradients in loops of the file whose optimizers take them by `minimize`."""
        self._fits, self._steps, self._minimized = fits, steps, minimized
        self._origins, self._optimizers = origins, Optimizers(origins)

    def _is_model(self, made: cst.CSTNode) -> bool:
        return isinstance(made, cst.Call) and self._origins.kinds(made) == {Kind.MODEL}

    @cached_property
    def taped(self) -> tuple[Gradient, ...]:
        """Gradients in own steps whose tapes are averaged: one of a step is changed before an optimizer sees it."""
        changed = [s for s in self._steps.functions if not all(map(self._steps.unchanged, self._steps.of(s)))]
        return tuple(dict.fromkeys(gradient for step in changed for gradient in self._steps.of(step)))

    @cached_property
    def _found(self) -> tuple[FittedOptimizer | Problem, ...]:
        found: dict[FittedOptimizer | Problem, None] = {}
        for fit in self._fits:
            found.update(dict.fromkeys(self._of_fit(fit)))
        for gradient in self._minimized:
            for given in self._optimizers.made(gradient.tape):
                found[given if isinstance(given, Problem) else FittedOptimizer(given, None, (gradient,))] = None
        return tuple(found)

    @property
    def optimizers(self) -> tuple[FittedOptimizer, ...]:
        """All optimizers of fitted models, and those that `minimize`: each once for every model that it trains."""
        return tuple(f for f in self._found if isinstance(f, FittedOptimizer))

    @property
    def updates(self) -> tuple[FittedOptimizer, ...]:
        """Those that take the averaging."""
        return tuple(u for u in self.optimizers if not u.taped)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """What is not certain about them."""
        mixed = [g for g in self.taped if g.minimized]
        reason = "gradients of this step are changed before they are applied, and minimize() takes others unaveraged"
        next_step = "take all gradients of the step by a tape, and apply them by apply_gradients"
        found = [f for f in self._found if isinstance(f, Problem)]
        return (*found, *self._steps.problems, *(Problem("TFDP031", g.call, reason, next_step) for g in mixed))

    def _of_fit(self, fit: Fit) -> list[FittedOptimizer | Problem]:
        if not fit.compiles:
            reason = f"cannot tell which optimizer {fit.method}() trains this model with"
            why = unfollowed(self._origins, fit.model, lambda made: self._is_model(made.node))
            why = why or Unknown(fit.model, "is a model that no call in this file is known to compile")
            return [Problem.since(self._origins.index, "TFDP031", fit.call, reason, why, _COMPILED)]
        if fit.step is None or self._steps.ends_with_keras(fit.step):
            bases = [(c, g) for c in fit.compiles for g in self._optimizers.base(c)]
            return [g if isinstance(g, Problem) else FittedOptimizer(g, c) for c, g in bases]
        mine: dict[Given, list[Gradient]] = {}
        problems: list[FittedOptimizer | Problem] = []
        for gradient in self._steps.of(fit.step):
            for update in gradient.updates:
                if update.kind == "assign":
                    reason = "this update by hand is part of a model's own train_step, where it is not averaged"
                    problems.append(Problem("TFDP031", update.call, reason, "apply the gradients by an optimizer"))
                    continue
                for given in self._optimizers.of(update.receiver, fit):
                    if isinstance(given, Problem):
                        problems.append(given)
                    else:
                        mine.setdefault(given, []).append(gradient)
        taped = set(self.taped)
        found = [(g, tuple(dict.fromkeys(of))) for g, of in mine.items()]
        return [*problems, *(FittedOptimizer(given, None, of, not taped.isdisjoint(of)) for given, of in found)]
