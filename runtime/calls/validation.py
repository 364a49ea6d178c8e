"""The validation that belongs to `fit` is divided, too: all workers run it, as they run `fit`.

`evaluate`, `predict` and `test_on_batch` of the script's own may be called by one worker alone: they stay whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import sight

# By which Keras 2, Keras 3 and tf-keras tell `evaluate` that `fit` calls it; private to them.
_BY_FIT = "_use_cached_eval_dataset"
# Of a model, as Keras keeps its own: the step refers to the model, and goes with it.
_STEP = "_tfdp_validation_step"


def hook_validation(model: Any) -> None:
    """From now on models of this class have a divided step for it, besides the one that Keras makes."""
    evaluating, compiling = (
        next(cls for cls in model.__mro__ if name in vars(cls)) for name in ("evaluate", "compile")
    )
    evaluating.evaluate = _evaluating(evaluating.evaluate)
    compiling.compile = _compiling(compiling.compile)


def _evaluating(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def evaluate(self: Any, *arguments: Any, **options: Any) -> Any:
        if not options.get(_BY_FIT):
            return original(self, *arguments, **options)
        whole = self.test_function
        if _STEP not in vars(self):
            self.test_function = None
            self.make_test_function()
            vars(self)[_STEP] = _divided(self.test_function)
        self.test_function = vars(self)[_STEP]
        try:
            return original(self, *arguments, **options)
        finally:
            self.test_function = whole

    return evaluate


def _divided(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step alone: callbacks around it may be rank 0's."""

    def run(*arguments: Any, **options: Any) -> Any:
        with sight.validation():
            return step(*arguments, **options)

    return run


def _compiling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(self: Any, *arguments: Any, **options: Any) -> Any:
        vars(self).pop(_STEP, None)
        return original(self, *arguments, **options)

    return compile
