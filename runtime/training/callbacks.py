"""Callbacks for Keras' `fit`, with the names and arguments that `horovod.keras.callbacks` has.

`dp.fit_callbacks` puts the first two into place by itself; with one worker those do nothing.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from .. import collective as collectives
from ..foundation import TfdpError
from ..framework import Variable, collect, keyed
from ..job import current, shards_calls
from ..keras import Hooks
from ..start import broadcast_state
from . import epoch_logs


class BroadcastGlobalVariablesCallback(Hooks):
    """The model and its optimizers take the root's values before the first batch of each `fit`.

    After everybody's `on_train_begin`, so that what rank 0 has restored there reaches all ranks.
    """

    def __init__(self, root_rank: int = 0, device: str = "", local_variables: Any = None) -> None:  # noqa: ARG002
        """`local_variables` stay each rank's own; `device` is taken for Horovod's sake and means nothing."""
        super().__init__()
        self._root_rank = root_rank
        self._own = {id(variable.handle) for variable in collect([local_variables or []])}
        self._due = True

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        self._due = True

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        if not self._due or current().topology.size == 1:
            return
        self._due = False
        held = [self.model, *_optimizers(self.model)]
        if self._root_rank == 0 and not self._own:
            broadcast_state(*held)
            return
        shared = [each for each in keyed(collect(held)).values() if id(each.handle) not in self._own]
        collectives.broadcast_variables(shared, self._root_rank)


class MetricAverageCallback(Hooks):
    """The logs of each epoch hold for all ranks' examples. Put it before callbacks that read them.

    Metric objects, and the losses that Keras keeps in such, are combined by the sum of their state over the ranks,
    which is exact; other values by their mean. Validation over the same examples on every rank is recognised the first
    time (all ranks' metrics have the same state), and rank 0's values are taken. So are all of them on sharded calls,
    where every rank's metrics have seen all examples.
    """

    def __init__(self, device: str = "", validation: Literal["auto", "whole", "shared"] = "auto") -> None:  # noqa: ARG002
        """`validation`: "whole" if each rank evaluates all examples, "shared" if each has its share of them."""
        super().__init__()
        if validation not in ("auto", "whole", "shared"):
            raise ValueError(f"validation is {validation!r}: it must be 'auto', 'whole' or 'shared'")
        self._whole = None if validation == "auto" else validation == "whole"
        self._in_epoch = False
        self._training: tuple[epoch_logs.Results, epoch_logs.Results] | None = None
        self._validation: tuple[epoch_logs.Results, epoch_logs.Results] | None = None
        self._last: dict[str, Any] = {}
        self._sees_all = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        self._in_epoch = current().topology.size > 1
        self._sees_all = shards_calls()
        self._training = self._validation = None

    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook: the validation of an epoch begins with resetting the metrics of its training."""
        if self._in_epoch and not self._sees_all and self._training is None:
            self._training = self._results()

    def on_test_end(self, logs: Any = None) -> None:
        """Keras' hook."""
        if not self._in_epoch or self._sees_all:
            return
        if self._whole is None:
            self._whole = epoch_logs.saw_the_same(self.model, logs or {})
        self._validation = ({}, {}) if self._whole else self._results()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        if not self._in_epoch or logs is None:
            return
        if self._sees_all:
            epoch_logs.combine(logs, {}, {}, frozenset(logs))
        else:
            self._combine(logs)
        self._last = dict(logs)
        self._in_epoch = False

    def _combine(self, logs: dict[str, Any]) -> None:
        local, total = self._training or self._results()
        root_only: frozenset[str] = frozenset()
        if self._validation is not None:
            local, total = (_with_prefix(*each) for each in zip((local, total), self._validation, strict=True))
            root_only = frozenset(name for name in logs if self._whole and name.startswith("val_"))
        epoch_logs.combine(logs, local, total, root_only)

    def on_train_end(self, logs: Any = None) -> None:
        """Keras' hook, which gets the last epoch's values as they were before they were combined."""
        if logs:
            logs.update({name: self._last[name] for name in logs if name in self._last})

    def _results(self) -> tuple[epoch_logs.Results, epoch_logs.Results]:
        return epoch_logs.local_results(self.model), epoch_logs.summed_results(self.model)


def _with_prefix(training: epoch_logs.Results, validation: epoch_logs.Results) -> epoch_logs.Results:
    return {**training, **{f"val_{name}": value for name, value in validation.items()}}


class LearningRateScheduleCallback(Hooks):
    """From `start_epoch` until before `end_epoch` the rate is `initial_lr` times `multiplier`.

    Args:
        initial_lr: the rate for all ranks together: `dp.scale_lr(rate)`.
        multiplier: a number, or a function of the epoch.
        staircase: the rate changes at the beginning of an epoch only; else at each batch, and the function is given
            fractions of epochs. A multiplier that is a number does not change.
        momentum_correction: taken for Horovod's sake. Keras' optimizers since TensorFlow 2.11 keep their momentum in no
            variable, so it cannot follow the rate; only that of a legacy optimizer is corrected for a batch.
        steps_per_epoch: needed for `staircase=False` where Keras does not know it.
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
        super().__init__()
        self._initial, self._multiplier = initial_lr, multiplier
        self._start, self._end = start_epoch, end_epoch
        self._staircase = staircase or not callable(multiplier)
        self._correct_momentum = momentum_correction
        self._momentum: float | None = None
        self._steps = steps_per_epoch
        self._epoch = 0

    def begin_at_rate(self) -> None:
        """The rate that the optimizer has now is the one that is multiplied."""
        self._initial = _rate(self.model.optimizer)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        self._epoch = epoch
        self._steps = self._steps or self.params.get("steps")
        if not self._staircase and not self._steps:
            raise TfdpError(
                f"{type(self).__name__} needs steps_per_epoch: Keras does not know how many batches an epoch has"
            )

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        if self._staircase:
            if batch == 0:
                self._adjust(self._epoch)
        else:
            self._adjust(self._epoch + batch / float(self._steps or 1))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        if self._momentum is not None:
            self.model.optimizer.momentum.assign(self._momentum)
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Keras' hook."""
        if logs is not None:
            logs["lr"] = _rate(self.model.optimizer)

    @property
    def steps(self) -> int:
        """The batches of an epoch."""
        return self._steps or 1

    def acts(self, epoch: float) -> bool:
        """Whether the rate is changed at this moment."""
        return epoch >= self._start and (self._end is None or epoch < self._end)

    def _adjust(self, epoch: float) -> None:
        if not self.acts(epoch):
            return
        factor = self._multiplier(epoch) if callable(self._multiplier) else self._multiplier
        optimizer = self.model.optimizer
        before, rate = _rate(optimizer), self._initial * factor
        optimizer.learning_rate = rate
        momentum: Any = getattr(optimizer, "momentum", None)
        if self._correct_momentum and before and hasattr(momentum, "assign"):
            self._momentum = float(np.asarray(momentum))
            momentum.assign(self._momentum * rate / before)


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Over the first epochs the rate grows from `initial_lr / N` to `initial_lr` (Goyal et al. 2017)."""

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: float = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
    ) -> None:
        """`initial_lr` is the rate for all ranks together: `dp.scale_lr(rate)`. `verbose`: rank 0 says the last one."""
        super().__init__(initial_lr, self._factor, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)
        self._warmup_epochs, self._verbose = warmup_epochs, verbose

    def _factor(self, epoch: float) -> float:
        size = current().topology.size
        # The last batch of the last of these epochs has the full rate.
        done = min(1.0, (epoch + 1.0 / (self._steps or 1)) / self._warmup_epochs)
        return (1.0 + (size - 1) * done) / size

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Keras' hook."""
        super().on_epoch_end(epoch, logs)
        last = self._warmup_epochs - 1 <= epoch < self._warmup_epochs
        if last and self._verbose > 0 and current().topology.rank == 0:
            print(f"Epoch {epoch + 1}: the warm-up has ended at the learning rate {_rate(self.model.optimizer):g}.")


def _rate(optimizer: Any) -> float:
    return float(np.asarray(optimizer.learning_rate))


def _optimizers(model: Any) -> list[Variable]:
    """The optimizers that a model keeps: the compiled one, and those that a script's own class has as attributes."""
    held = {id(each): each for each in vars(model).values() if hasattr(each, "apply_gradients")}
    compiled = getattr(model, "optimizer", None)
    return list({**held, id(compiled): compiled}.values()) if compiled is not None else list(held.values())
