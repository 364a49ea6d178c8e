"""What a script trains by Keras' own training: the calls, their data, and the gradients behind them."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from ..apis import EXAMPLES
from ..data import Datasets
from ..program import Origins, Problem
from ..training import Gradient, is_averaged
from .averaging import KerasAveraging
from .fit_data import FitCalls, FitData, given_to, ordered_callbacks
from .fits import Fit, KerasTraining
from .train_steps import KerasSteps


class Fitted(KerasTraining):
    """The facts of a script's fits. Everything is computed on first use and never changes."""

    def __init__(self, origins: Origins, datasets: Datasets, gradients: tuple[Gradient, ...]) -> None:
        """`gradients`: all gradient calls on tapes of the file."""
        super().__init__(origins)
        self._datasets, self._gradients = datasets, gradients

    # --- gradients ----------------------------------------------------------------------------------------------------

    @cached_property
    def fed(self) -> tuple[Gradient, ...]:
        """The gradients that Keras takes of each batch it is given."""
        return tuple(self._fed(fit) for fit in self.on_batches)

    def _fed(self, fit: Fit) -> Gradient:
        given = tuple(a.value for a in fit.call.args if a.keyword is None or a.keyword.value in EXAMPLES)
        optimizers = [c.optimizer for c in fit.compiles]
        averaged = bool(optimizers) and all(o is not None and is_averaged(self._origins, o) for o in optimizers)
        return Gradient(fit.call, fit.model, None, None, averaged, (), (), fed=given)

    @cached_property
    def _own_steps(self) -> KerasSteps:
        return KerasSteps(self._origins, self.by_keras, self._gradients)

    @property
    def stepped(self) -> tuple[Gradient, ...]:
        """The gradient calls in models' own `train_step`, which `fit` runs, whose result reaches an update."""
        return self._own_steps.gradients

    @cached_property
    def averaging(self) -> KerasAveraging:
        """How the gradients of fitted models are averaged."""
        by_fit = {id(g) for g in self.stepped}
        minimized = tuple(g for g in self._gradients if g.minimized and g.updates and id(g) not in by_fit)
        return KerasAveraging(self._origins, self.by_keras, self._own_steps, minimized)

    # --- data ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _found_data(self) -> tuple[FitData | Problem, ...]:
        calls = FitCalls(self._origins, self._datasets)
        return tuple(calls.of(f) for f in self.calls)

    @property
    def data(self) -> tuple[FitData, ...]:
        """What each call trains on."""
        return tuple(f for f in self._found_data if isinstance(f, FitData))

    @property
    def unread(self) -> tuple[Problem, ...]:
        """Calls whose data are not understood."""
        return tuple(f for f in self._found_data if isinstance(f, Problem))

    @property
    def sizes(self) -> list[cst.BaseExpression]:
        """The sizes of batches that `fit` takes out of arrays."""
        given = [given_to(f.fit.call, "batch_size") for f in self.data if f.arrays]
        return [g for g in given if g is not None]

    @property
    def open_callbacks(self) -> tuple[cst.Call, ...]:
        """Calls whose callbacks are not put in order for several ranks yet."""
        return tuple(f.fit.call for f in self.data if not ordered_callbacks(self._origins, f.fit))
