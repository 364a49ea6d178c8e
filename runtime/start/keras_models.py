"""What Keras' own training must not do on several ranks: train without averaging, or compile a collective by XLA.

A model that `load_model` gives has an optimizer of its own, and one may be compiled again anywhere; what it is
trained with is known at last when Keras makes the function of its training step.
"""

import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..foundation import TfdpError, call_site, say_once
from ..gradients import exchanges
from ..job import current, is_initialized, runs_as_written, shards_calls
from ..keras import PACKAGES, is_averaged
from .loss_rows import watch_losses
from .row_independence import watch_calls

_LOOKS = frozenset({"get_attr_skipset", "_walk_saveable"})

_watched: set[str] = set()
# Models whose own training step has averaged: what it has traced once it does not trace again.
_averaging: weakref.WeakSet[Any] = weakref.WeakSet()


def watch_keras(row_check: bool) -> None:
    """Look at every Keras model before it is trained, and with `row_check` before it is called.

    Keras may be imported at any time: call it now and then.
    """
    for package in PACKAGES:
        model = getattr(sys.modules.get(package), "Model", None)
        if model is None or package in _watched:
            continue
        _watched.add(package)
        cls: Any = next(cls for cls in model.__mro__ if "make_train_function" in vars(cls))
        cls.make_train_function = _watched_method(vars(cls)["make_train_function"])
        if row_check:
            watch_calls(model)
            watch_losses(sys.modules[f"{package}.losses"])


def made_to_be_looked_at() -> bool:
    """Whether Keras makes what is made now only to see, when it saves, which attributes all of its kind have.

    One rank saves, and the variables of its spare optimizer would pass for those of the other ranks' next one. The
    functions are private ones of Keras 3: there is no other mark. Should they not be found, the ranks still compare
    their variables before the first step.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _LOOKS and frame.f_globals.get("__name__", "").split(".")[0] in PACKAGES:
            return True
        frame = frame.f_back
    return False


def _watched_method(original: Callable[..., Any]) -> Callable[..., Any]:
    def make_train_function(self: Any, force: bool = False) -> Any:
        if not is_initialized() or current().topology.size == 1:
            return original(self, force)
        _keep_out_of_xla(self)
        if shards_calls() or runs_as_written() or is_averaged(getattr(self, "optimizer", None)):
            return original(self, force)
        if _is_kerass(getattr(self, "train_step", None)):
            raise TfdpError(_message(call_site(), "would train"))
        made = self.train_function is None or force
        function = original(self, force)
        if made and self not in _averaging:
            function = self.train_function = _FirstStep(self, self.train_function)
        return function

    return make_train_function


class _FirstStep:
    """A model's training function, until it has shown that its own `train_step` averages."""

    def __init__(self, model: Any, function: Callable[..., Any]) -> None:
        self._model, self._function = model, function

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        before = exchanges()
        result = self._function(*arguments, **options)
        if exchanges() == before:
            raise TfdpError(_message(call_site(), "has taken a step by its own train_step"))
        _averaging.add(self._model)
        self._model.train_function = self._function
        return result


def _message(site: str, done: str) -> str:
    return (
        f"the model at {site} {done} without averaging gradients over the ranks: each would train a model of its own. "
        "Call dp.DistributedOptimizer(model.optimizer) before training: `compile` and `load_model` give a model an "
        "optimizer that averages nothing. In a train_step of one's own each optimizer must be one, or the tape a "
        "dp.DistributedGradientTape"
    )


def _is_kerass(step: Any) -> bool:
    """Whether it is Keras' own `train_step`, which applies the gradients by `model.optimizer`."""
    module = getattr(getattr(step, "__func__", None), "__module__", None) or ""
    return module.split(".")[0] in PACKAGES


def _keep_out_of_xla(model: Any) -> None:
    """On GPU Keras 3 turns it on by itself."""
    if not getattr(model, "jit_compile", False):
        return
    model.jit_compile = False
    if current().topology.rank == 0:
        say_once(
            f"training at {call_site()} runs without XLA (jit_compile=False), which cannot compile the collectives"
        )
