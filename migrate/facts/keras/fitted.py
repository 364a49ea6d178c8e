"""What a script trains by Keras' own training: the calls, their data, and the gradients behind them."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from ..data import Datasets
from ..program import Origins, Problem
from ..training import Gradient
from .averaging import KerasAveraging
from .callbacks import open_callbacks
from .fit_data import FitCalls, FitData, given_to
from .fits import Compile, Fit, KerasTraining, fed
from .train_steps import KerasSteps


class Fitted:
    """The facts of a script's fits. Everything is computed on first use and never changes."""

    def __init__(self, origins: Origins, datasets: Datasets, gradients: tuple[Gradient, ...]) -> None:
        """`gradients`: all gradient calls on tapes of the file."""
        self._origins, self._datasets, self._gradients = origins, datasets, gradients
        self._keras = KerasTraining(origins)

    @property
    def compiles(self) -> tuple[Compile, ...]:
        """Calls of Keras' `compile`."""
        return self._keras.compiles

    @property
    def calls(self) -> tuple[Fit, ...]:
        """Calls of Keras' `fit`, or what looks like it, each with the compiles of its model."""
        return self._keras.fits

    @property
    def on_batches(self) -> tuple[Fit, ...]:
        """Calls of Keras' train_on_batch, each with the compiles of its model."""
        return self._keras.on_batches

    @property
    def by_keras(self) -> tuple[Fit, ...]:
        """All calls by which Keras takes and applies gradients."""
        return (*self.calls, *self.on_batches)

    @property
    def handed_models(self) -> tuple[cst.CSTNode, ...]:
        """Functions that make compiled models, where something outside the file is given them."""
        return self._keras.handed

    # --- gradients ----------------------------------------------------------------------------------------------------

    @cached_property
    def fed(self) -> tuple[Gradient, ...]:
        """The gradients that Keras takes of each batch it is given."""
        return tuple(fed(f, self._origins) for f in self.on_batches)

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
        return tuple(f.fit.call for f in self.data if open_callbacks(self._origins, f))
