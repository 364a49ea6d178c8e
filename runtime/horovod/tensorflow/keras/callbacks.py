"""`horovod.tensorflow.keras.callbacks`, and `horovod.keras.callbacks`, over this runtime."""
# ruff: noqa: F401 - what scripts import

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import training
from ....training import BroadcastGlobalVariablesCallback, LearningRateWarmupCallback, MetricAverageCallback
from ...names import OF_CALLBACKS
from ...options import left_out

__all__ = list(OF_CALLBACKS)


class LearningRateScheduleCallback(training.LearningRateScheduleCallback):
    """From `start_epoch` until before `end_epoch` the rate is `initial_lr` times `multiplier`.

    A multiplier that is a number is raised to the number of epochs since `start_epoch`, as Horovod 0.28.1 does.
    """

    def __init__(  # noqa: PLR0917 - Horovod's order
        self,
        initial_lr: float,
        multiplier: float | Callable[[float], float],
        start_epoch: float = 0,
        end_epoch: float | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:
        """As `dp.callbacks.LearningRateScheduleCallback`. Raises ValueError without `initial_lr`."""
        if initial_lr is None:
            raise ValueError("LearningRateScheduleCallback needs initial_lr, the rate that it multiplies")

        def decayed(epoch: float) -> float:
            assert not callable(multiplier)
            return float(multiplier ** (epoch - start_epoch))

        of_epoch = multiplier if callable(multiplier) else decayed
        super().__init__(initial_lr, of_epoch, start_epoch, end_epoch, staircase, momentum_correction, steps_per_epoch)


def __getattr__(name: str) -> Any:
    raise left_out("horovod.keras.callbacks", name)
