"""`horovod.tensorflow.keras.callbacks`, and `horovod.keras.callbacks`, over this runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from .... import training
from ....framework import collect
from ....job import rank, size
from ....keras import Hooks, variables_of
from ...collectives import broadcast_variables, grouped_allreduce
from ...names import OF_CALLBACKS
from ...options import left_out

__all__ = list(OF_CALLBACKS)


class BroadcastGlobalVariablesCallback(Hooks):
    """The model and its optimizer take the root's values after the first batch, when all of them are there."""

    def __init__(self, root_rank: int, device: str = "", local_variables: Any = None) -> None:
        """`local_variables` stay each rank's own."""
        del device
        super().__init__()
        self._root_rank = root_rank
        self._own = {id(variable.handle) for variable in collect([local_variables or []])}
        self._done = False

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        if self._done:
            return
        self._done = True
        held = [*self.model.variables, *variables_of(self.model.optimizer)]
        broadcast_variables([each for each in held if id(each.handle) not in self._own], self._root_rank)


class MetricAverageCallback(Hooks):
    """The logs of each epoch become the mean of the ranks', as with Horovod; callbacks that read them come after it."""

    def __init__(self, device: str = "") -> None:
        """`device` means nothing."""
        del device
        super().__init__()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        names = sorted(logs or {})
        values = [tf.constant(logs[name], tf.float32) for name in names]
        for name, mean in zip(names, grouped_allreduce(values, name=", ".join(names)), strict=True):
            logs[name] = mean.numpy()


class LearningRateScheduleCallback(training.LearningRateScheduleCallback):
    """From `start_epoch` until before `end_epoch` the rate is `initial_lr` times `multiplier`.

    A multiplier that is a number is raised to the number of epochs since `start_epoch`, as in Horovod 0.28.1. Without
    `initial_lr`, as before Horovod 0.20, it is the optimizer's rate when training begins.
    """

    def __init__(  # noqa: PLR0917 - Horovod's order
        self,
        initial_lr: float | None = None,
        multiplier: float | Callable[[float], float] = 1.0,
        start_epoch: float = 0,
        end_epoch: float | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:
        """As `dp.callbacks.LearningRateScheduleCallback`."""

        def decayed(epoch: float) -> float:
            assert not callable(multiplier)
            return float(multiplier ** (epoch - start_epoch))

        of_epoch = multiplier if callable(multiplier) else decayed
        given = 0.0 if initial_lr is None else initial_lr
        super().__init__(given, of_epoch, start_epoch, end_epoch, staircase, momentum_correction, steps_per_epoch)
        self._of_optimizer = initial_lr is None

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        if self._of_optimizer:
            self.begin_at_rate()

    def acts(self, epoch: float) -> bool:
        """Whether the rate is changed at this moment: by whole epochs, as Horovod looks at them."""
        return super().acts(int(epoch))


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Over the first epochs the rate grows from `initial_lr / N` to `initial_lr`; without it, to the optimizer's.

    An epoch that is in them in part is in them, and the rate goes on to grow, as with Horovod.
    """

    def __init__(
        self,
        initial_lr: float | None = None,
        warmup_epochs: float = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
    ) -> None:
        """As `dp.callbacks.LearningRateWarmupCallback`."""

        def grown(epoch: float) -> float:
            done = (epoch + 1.0 / self.steps) / warmup_epochs
            return (1.0 + (size() - 1) * done) / size()

        super().__init__(initial_lr, grown, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)
        self._warmup_epochs, self._verbose = warmup_epochs, verbose

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Keras' hook."""
        super().on_epoch_end(epoch, logs)
        if epoch == self._warmup_epochs - 1 and self._verbose > 0 and rank() == 0:
            rate = float(np.asarray(self.model.optimizer.learning_rate))
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {rate:g}.")


def __getattr__(name: str) -> Any:
    raise left_out("horovod.keras.callbacks", name)
