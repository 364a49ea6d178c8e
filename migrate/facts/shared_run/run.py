"""The facts of one script that differ where every worker runs the whole of it."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from ..apis import PROCESS
from ..program import Problem
from ..training import Entry, entry
from ..training_file import TrainingFile
from .callbacks import GivenCallbacks
from .compiled import Compiled
from .functions import RowFunctions
from .kept import Kept
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
    def functions(self) -> RowFunctions:
        """Functions of variables whose calls may be divided."""
        return RowFunctions(self._script, self.training)

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
    def written(self) -> Kept:
        """What is written and shown that the text keeps to rank 0."""
        return Kept(self._origins)

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
        index, called = self._script.index, self._origins.called
        asked = [c for c in index.calls if PROCESS.match(called(c)) and index.enclosing_function(c) is None]
        return entry(self._script.program.entry.module, self._origins, asked, self.written.writes)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that keeps the script from being migrated, but what the author ignores."""
        return refused(self._script, self)
