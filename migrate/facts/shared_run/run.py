"""The facts of one script that differ where every worker runs the whole of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from ... import outputs
from ...outputs import EffectKind
from ..agreement import Agreement
from ..apis import PROCESS
from ..hazards import unplaced
from ..outputs import Effect, Trains, Writers, Written
from ..program import Problem, method
from ..training import Entry, entry
from ..training_file import TrainingFile
from .callbacks import GivenCallbacks
from .compiled import Compiled
from .functions import RowFunctions
from .refused import refused
from .retired import Retired
from .trains import TrainingCalls

_KEPT = frozenset({EffectKind.FETCH, EffectKind.RUN, EffectKind.READ_RUN})
"""What is kept to rank 0 by the text. All else that is shown and written the runtime does."""


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
        """What all ranks come to alike."""
        return Agreement(self._origins, self._script.loops, fits=(*self.training.steps, *self._divided))

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
    def written(self) -> Written:
        """What is written and shown; what cannot be placed in the text the runtime lets rank 0 write, and others read
        when it has."""
        fitted, certain = self._script.fitted, self.agreement.certain
        return Written(
            self._origins,
            Trains(self._script.loops, fitted.calls, fitted.by_keras, self.training.steps),
            certain=certain,
            together=lambda: self._divided,
            kept=self._is_kept,
            reads=certain,
        )

    def _is_kept(self, effect: Effect) -> bool:
        return effect.kind in _KEPT or self._is_by_itself(effect)

    def _unplaced(self, effect: Effect) -> Problem | None:
        return unplaced(effect, self._origins, self.agreement.certain)

    def _is_by_itself(self, effect: Effect) -> bool:
        if isinstance(effect.call, cst.Call) and method(effect.call) in outputs.NATIVE_TABLES:
            return True
        return self._origins.called(effect.call).startswith(outputs.BY_THEMSELVES)

    @property
    def unplaced(self) -> Iterator[Problem]:
        """What writes by code of its own, and cannot be kept to rank 0 where it stands."""
        found = (self._unplaced(e) for e in self.written.effects if self._is_by_itself(e))
        return (problem for problem in found if problem is not None)

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
        writers = Writers(self._origins)
        return entry(
            self._script.program.entry.module,
            self._origins,
            asked,
            writes=lambda call: writers.kind(call) not in (None, EffectKind.PRINT),
        )

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that keeps the script from being migrated, but what the author ignores."""
        return refused(self._script, self)
