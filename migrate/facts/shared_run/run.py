"""The facts of one script that differ where every worker runs the whole of it."""

from __future__ import annotations

from functools import cached_property

from ..agreement import Agreement
from ..outputs import Trains, Written
from ..program import Problem
from ..sameness import SameData
from ..training import Entry, entry
from ..training_file import TrainingFile
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
        origins, datasets = self._origins, self._script.datasets
        same, steps = SameData(origins, datasets), self.training.steps
        finder = self._script.loop_finder
        return Agreement(origins, datasets, self._script.loops, finder, (), fits=steps, sameness=same)

    @cached_property
    def written(self) -> Written:
        """What is written and shown."""
        fitted = self._script.fitted
        return Written(
            self._origins,
            Trains(self._script.loops, fitted.calls, fitted.by_keras, self.training.steps),
            certain=self.agreement.certain,
            may_agree=self.agreement.may_agree,
            together=lambda: self.training.of_models,
        )

    @cached_property
    def entry(self) -> Entry:
        """Where the runtime is initialised."""
        return entry(self._script.program.entry.module, self._origins, self.written.names)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that keeps the script from being migrated, but what the author ignores."""
        return ()
