"""`fit_generator`, which Keras has retired: `fit` takes the same, under other names and places."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from ..program import Problem
from ..training_file import TrainingFile

_NAME = "fit_generator"
PLACES = ("x", "steps_per_epoch", "epochs")
"""What its first arguments are to `fit`; those behind them stand at other places than in `fit`."""


class Retired:
    """Answers for all calls of a file."""

    def __init__(self, script: TrainingFile) -> None:
        self._script = script

    @cached_property
    def _calls(self) -> tuple[cst.Call, ...]:
        return tuple(f.call for f in self._script.fitted.calls if f.method == _NAME)

    @property
    def calls(self) -> tuple[cst.Call, ...]:
        """Calls that `fit` can stand for."""
        return tuple(c for c in self._calls if _placed(c))

    def problems(self) -> Iterator[Problem]:
        """Calls whose arguments stand at places that mean something else to `fit`."""
        reason = "fit_generator is gone from Keras, and its arguments stand at other places than those of fit"
        for call in self._calls:
            if not _placed(call):
                yield Problem("TFDP054", call, reason, "write them by keyword: verbose=…, callbacks=…")


def _placed(call: cst.Call) -> bool:
    return sum(a.keyword is None for a in call.args) <= len(PLACES) and not any(a.star == "*" for a in call.args)
