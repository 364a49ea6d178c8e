"""In which epoch a `fit` begins that goes on from an earlier one: by the names that BackupAndRestore tells Keras."""

from __future__ import annotations

from typing import Any


class Resumed:
    """In place of what Keras 2 reads after `on_train_begin`: where a backup goes on."""

    def __init__(self, epoch: int, step: int) -> None:
        self._begin = epoch, step

    def maybe_load_initial_counters_from_ckpt(self, *_: Any, **__: Any) -> tuple[int, int]:
        """Keras 2's: the epoch and the step."""
        return self._begin


def begin_in(model: Any, epoch: int) -> None:
    """Let the `fit` that has called `on_train_begin` go on with this epoch, 1 or more."""
    if hasattr(model, "_initial_epoch"):
        model._initial_epoch = epoch
    else:
        model._training_state = Resumed(epoch, 0)


def begin_as_asked(model: Any) -> None:
    """The next `fit` begins where it is asked to."""
    if hasattr(model, "_initial_epoch"):
        model._initial_epoch = None
    elif isinstance(getattr(model, "_training_state", None), Resumed):
        model._training_state = None
