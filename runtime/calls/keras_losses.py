"""The hooks into Keras' own losses and metrics, which compute a number for each row and take means of those.

Where they take what a divided call gives, each worker computes those of its own rows, and they are gathered instead of
what the model gives. Each of their operations is seen: a hinge loss asks whether all labels of the batch are 0 or 1.
Functions of the script's own are called with all rows.
"""

from __future__ import annotations

import functools
from typing import Any

from ..framework import as_written
from ..keras import is_keras
from . import division
from .callee import Callee
from .guard import Code
from .kept import Kept


def hook_losses(losses: Any, metrics: Any) -> None:
    """Hook into the classes of one Keras that call functions of `y_true` and `y_pred`. Both are private to it."""
    _hook_losses(next(cls for cls in losses.MeanSquaredError.__mro__ if "call" in vars(cls)))
    _hook_metrics(next(cls for cls in metrics.MeanSquaredError.__mro__ if "update_state" in vars(cls)))


def _hook_losses(owner: Any) -> None:
    original = owner.call

    @functools.wraps(original)
    def call(self: Any, y_true: Any, y_pred: Any) -> Any:
        return _by_rows(functools.partial(original, self), self.fn, self)(y_true, y_pred)

    owner.call = call


def _hook_metrics(owner: Any) -> None:
    original = owner.update_state

    @functools.wraps(original)
    def update_state(self: Any, *arguments: Any, **options: Any) -> Any:
        function = self._fn
        vars(self)["_fn"] = as_written(_by_rows(function, function, self))
        try:
            return original(self, *arguments, **options)
        finally:
            vars(self)["_fn"] = function

    owner.update_state = update_state


def _by_rows(call: Any, function: Any, owner: Any) -> Any:
    if not is_keras(function):
        return call

    def called(*arguments: Any, **options: Any) -> Any:
        callee = Callee(call, owner, f"{type(owner).__name__} {owner.name!r}", _kept, True, None, Code(owner))
        return division.continued(callee, arguments, options)

    return called


def _kept() -> Kept:
    return Kept([], [], [], [])
