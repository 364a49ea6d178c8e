"""Sums and means over the global batch, of which a loss is made that is no mean over its examples."""

import threading
from typing import Any

import tensorflow as tf

from ..foundation import Average, ReduceOp, Sum, call_site
from ..framework import as_written
from ..transports import Tensor
from .operations import allreduce, reducible


@as_written
def global_sum(value: Any, name: str | None = None) -> Tensor:
    """What a sum over the local batch is over the global batch, where a `tf.GradientTape` records it.

    A loss that is any function of sums over the batch, such as Dice, is that of the global batch if each of the sums
    is taken so. It is then the same number on all ranks, and the average of the ranks' gradients is its gradient: the
    derivative of each rank's sum counts in all ranks' losses.

    Where no tape records (`evaluate`, `predict`, a validation loss, a metric), which one rank may do alone, the value
    is returned as it is. A `tf.function` is traced once for both: do not decorate one that is used in both ways.

    Args:
        value: a sum over the examples of the local batch; dtypes as for `dp.allreduce`, of the same shape on all
            ranks, and at the same places of the step.
        name: compared over the ranks, and used in messages.

    Returns:
        The shape and dtype of `value`.

    Raises:
        TypeError, CollectiveMismatchError, JobAborted, StallError: as for `dp.allreduce`.
    """
    return _over_ranks(value, Sum, name)


@as_written
def global_mean(value: Any, name: str | None = None) -> Tensor:
    """The mean of all ranks' values, where a `tf.GradientTape` records it: for a mean over the local batch that over
    the global batch, if the batches are of one size.

    Of a sum by which another one is divided, such as the elements that a mask leaves, it makes a ratio exact:
    `tf.reduce_sum(losses * mask) / dp.global_mean(tf.reduce_sum(mask))` has the global batch's gradient after
    averaging. Everything else is as for `dp.global_sum`.

    Raises:
        TypeError: also integers, whose mean is none: `tf.cast` them first.
    """
    given = tf.convert_to_tensor(value)
    if not given.dtype.is_floating:
        raise TypeError(f"global_mean of {given.dtype.name} at {call_site()}: use tf.cast(…, tf.float32) first")
    return _over_ranks(given, Average, name)


class _Thread(threading.local):
    """How often this thread has asked for a sum or mean over the global batch."""

    asked = 0


_thread = _Thread()


def times_asked() -> int:
    """How often `global_sum` and `global_mean` have been called in this thread."""
    return _thread.asked


def _over_ranks(value: Any, op: ReduceOp, name: str | None) -> Tensor:
    _thread.asked += 1
    return allreduce(value, op, name) if is_recording() else reducible(value)


def is_recording() -> bool:
    """Whether a `tf.GradientTape` of this thread records what is computed now, also while a function is traced.

    TensorFlow has no public function that says so.
    """
    from tensorflow.python.eager import record

    return bool(record.could_possibly_record())
