"""In which epoch a `fit` begins that goes on from an earlier one: by what BackupAndRestore sets for Keras 3."""

from __future__ import annotations

from typing import Any


def can_begin_later(model: Any) -> bool:
    """Whether this model's `fit` asks in which epoch it begins; Keras 2's asks for batches of a checkpoint."""
    return hasattr(model, "_initial_epoch")


def begin_in(model: Any, epoch: int | None) -> None:
    """Let the `fit` that has called `on_train_begin`, or the next one, begin with this epoch; None: as is asked."""
    model._initial_epoch = epoch
