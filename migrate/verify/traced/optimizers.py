"""The optimizers that a script makes: what they are set to, told at the end of the run."""

import contextlib
import weakref
from pathlib import Path
from typing import Any

import tensorflow as tf

from ..record import SLACK, STEPS, Optimizer, write_settings
from . import made as _made


class Settings:
    """Knows Keras' optimizers in the order in which they were made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[weakref.ref[Any]] = []

    def install(self) -> None:
        """Remember every one that is made, from now on."""
        _made.watch(tf.keras.optimizers.Optimizer, lambda optimizer: self._made.append(weakref.ref(optimizer)))

    def write(self) -> None:
        """Write what those are set to that have updated variables."""
        living = [optimizer for made in self._made if (optimizer := made()) is not None]
        described = [_described(optimizer) for optimizer in living]
        write_settings(self._folder, [one for one in described if one is not None])


def _described(optimizer: Any) -> Optimizer | None:
    # A class of the script's own may not be able to say what it is set to; its steps are compared nevertheless.
    with contextlib.suppress(Exception), tf.init_scope():
        if not int(optimizer.iterations):
            return None
        numbers = {name: value for name, value in optimizer.get_config().items() if isinstance(value, float)}
        numbers.pop("learning_rate", None)
        return Optimizer(type(optimizer).__name__, numbers, _rates(optimizer))
    return None


def _rates(optimizer: Any) -> tuple[tuple[float, float, float], ...]:
    schedule = getattr(optimizer, "_learning_rate", None)
    if not isinstance(schedule, tf.keras.optimizers.schedules.LearningRateSchedule):
        return ()

    def rate(step: int) -> float:
        return float(schedule(tf.constant(max(step, 0), tf.int64)))

    rates = []
    for step in STEPS:
        near = [rate(step - SLACK), rate(step), rate(step + SLACK)]
        rates.append((min(near), near[1], max(near)))
    return tuple(rates)
