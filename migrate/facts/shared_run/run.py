"""The facts of one script that differ where every worker runs the whole of it."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from ..agreement import Agreement
from ..outputs import Trains, Written
from ..program import Problem
from ..sameness import Sameness
from ..training import Entry, entry
from ..training_file import TrainingFile
from .callbacks import GivenCallbacks
from .compiled import Compiled
from .functions import RowFunctions
from .per_process import PerProcess
from .refused import refused
from .retired import Retired
from .trains import TrainingCalls


class SharedRun:
    """Everything is computed on first use and never changes."""

    def __init__(self, script: TrainingFile) -> None:
        self._script, self._origins = script, script.origins

    @cached_property
    def training(self) -> TrainingCalls:
        """Where the script trains and calls its models."""
        return TrainingCalls(self._script)

    @cached_property
    def agreement(self) -> Agreement:
        """What makes decisions equal on all ranks that go by a clock, or by which files there are."""
        together = (*self.training.steps, *self._divided)
        finder, loops = self._script.loop_finder, self._script.loops
        return Agreement(self._origins, loops, finder, fits=together, sameness=self._same)

    @cached_property
    def functions(self) -> RowFunctions:
        """Functions of variables whose calls may be divided."""
        return RowFunctions(self._script, self.training)

    @cached_property
    def _divided(self) -> frozenset[cst.CSTNode]:
        return self.training.of_models.union(self.functions.calls)

    @property
    def products(self) -> tuple[cst.BinaryOperation | cst.Call, ...]:
        """Products by variables, where nothing else could be divided."""
        return () if self._calls else self.functions.products

    @property
    def divides(self) -> bool:
        """Whether there may be something that is divided."""
        return self._calls or bool(self.functions.products)

    @cached_property
    def _calls(self) -> bool:
        """Whether there may be a call that is divided: of Keras, of such a function, or in another file."""
        mine = (
            self.training.of_models
            or self.functions.calls
            or self._script.calls("by_rows")
            or self._script.calls("matmul")
        )
        return bool(mine or self._script.fitted.calls or self._script.elsewhere or self.training.may_be_elsewhere)

    @cached_property
    def _same(self) -> Sameness:
        return Sameness(self._origins, self._script.datasets)

    @cached_property
    def written(self) -> Written:
        """What is written and shown."""
        fitted = self._script.fitted
        return Written(
            self._origins,
            Trains(self._script.loops, fitted.calls, fitted.by_keras, self.training.steps),
            certain=self.agreement.certain,
            may_agree=self.agreement.may_agree,
            together=lambda: self._divided,
        )

    @cached_property
    def per_process(self) -> PerProcess:
        """What each process makes for itself, and goes into training."""
        return PerProcess(self._script, self.training, self.agreement, self._same, self.written)

    @cached_property
    def compiled(self) -> Compiled:
        """Where XLA compiles what the workers share."""
        return Compiled(self._script)

    @cached_property
    def callbacks(self) -> GivenCallbacks:
        """What `fit` is given as callbacks."""
        return GivenCallbacks(self._script)

    @cached_property
    def retired(self) -> Retired:
        """Calls of what Keras has retired."""
        return Retired(self._script)

    @cached_property
    def entry(self) -> Entry:
        """Where the runtime is initialised."""
        return entry(self._script.program.entry.module, self._origins, self.written.names)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that keeps the script from being migrated, but what the author ignores."""
        return refused(self._script, self)
