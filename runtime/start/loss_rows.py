"""Is a loss of Keras' the mean, or the sum, of what its rows give? One that puts examples together is not.

That is seldom the loss's own doing: labels of shape (B, 1, 2) beside outputs of shape (B, 2) are broadcast to every
pair of examples, and an output of shape (B,) has the batch for its last axis. At its first call under a tape, for each
pair of shapes, a loss is taken over made-up rows, as a whole and in two halves.
"""

import functools
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..collective import is_recording, times_asked
from ..foundation import TfdpError, call_site
from ..job import current, is_initialized, shards_calls

_ROWS = 6
_UNKNOWN_AXIS = 4  # elements of an axis whose length is not known
_LIMIT = 1e-4  # of the largest value; rounding of half precisions is left out: the rows are float32

_seen: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()


def watch_losses(losses: Any) -> None:
    """Look at every loss of a Keras' `losses.Loss` class that a tape records."""
    cls = losses.Loss
    original = cls.__call__

    @functools.wraps(original)
    def called(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None, **options: Any) -> Any:
        if is_initialized() and current().topology.size > 1 and not shards_calls() and is_recording():
            _look(original, self, y_true, y_pred, sample_weight)
        return original(self, y_true, y_pred, sample_weight, **options)

    cls.__call__ = called


def _look(call: Any, loss: Any, *given: Any) -> None:
    """Look at a loss of labels, outputs and weights, once for each of their shapes.

    Raises:
        TfdpError: it puts examples together.
    """
    given = given if getattr(given[2], "shape", None) is not None else given[:2]  # of a number there is nothing to say
    if not all(hasattr(each, "shape") and hasattr(each, "dtype") for each in given):
        _refuse_several(loss)
        return
    if any(tf.TensorShape(each.shape).rank is None for each in given):
        raise TfdpError(
            f"the loss {_name(loss)!r} at {call_site()} has labels or outputs of which the number of axes is not known "
            "here, and with it whether they put the examples of a batch together: train on labels of one shape, or "
            "migrate the script with --shard calls"
        )
    shapes = tuple(tuple(tf.TensorShape(each.shape)[1:]) for each in given if tf.TensorShape(each.shape).rank)
    seen = _seen.setdefault(loss, set())
    if shapes in seen or len(shapes) < 2:
        return
    seen.add(shapes)
    with tf.init_scope():  # outside the function that is traced, and unseen by tapes
        try:
            separate = _is_of_rows(call, loss, [_made(shape, number) for number, shape in enumerate(shapes)])
        except (ValueError, TypeError, tf.errors.OpError):
            separate = len(shapes[0]) == len(shapes[1]) > 0
    if not separate:
        raise TfdpError(_message(loss, *shapes))


def _refuse_several(loss: Any) -> None:
    """A loss of Keras' own makes one tensor of several outputs, and broadcasts it. What `compile` makes of losses has
    one for each output; what a class of the script's own does is not known.

    Raises:
        TfdpError: a loss of Keras' own is given several outputs.
    """
    module = type(loss).__module__
    if module.startswith(("keras.", "tf_keras.")) and not module.endswith("compile_utils"):
        raise TfdpError(
            f"the loss {_name(loss)!r} at {call_site()} is given several labels or outputs at once, so that it is not "
            "seen whether it puts the examples of a batch together: take the loss of each output, or migrate the "
            "script with --shard calls"
        )


def _made(shape: tuple[int | None, ...], number: int) -> Any:
    """Rows of this shape, of numbers that may be probabilities."""
    size = [_ROWS, *(_UNKNOWN_AXIS if each is None else each for each in shape)]
    return np.random.RandomState(number).uniform(0.1, 0.9, size).astype("float32")


def _is_of_rows(call: Any, loss: Any, made: Sequence[Any]) -> bool:
    half, asked = _ROWS // 2, times_asked()
    whole, again, first, last = (
        np.asarray(call(loss, *(tf.constant(each[rows]) for each in made)), "float64")
        for rows in (slice(None), slice(None), slice(None, half), slice(half, None))
    )
    if times_asked() > asked or not np.array_equal(whole, again):
        return True  # it sums over the global batch by itself, or it draws: there is no telling
    if whole.ndim:
        together = np.concatenate([first, last]) if first.ndim == last.ndim == whole.ndim else np.zeros(0)
    else:
        together = first + last if getattr(loss, "reduction", None) == "sum" else (first + last) / 2
    if whole.shape != together.shape:
        return False
    return bool((np.abs(whole - together) <= _LIMIT * np.abs(whole).max(initial=0.0)).all())


def _message(loss: Any, *shapes: tuple[Any, ...]) -> str:
    labels, outputs, *weights = (f"({', '.join(['B', *map(str, shape)])})" for shape in shapes)
    outputs += f" and weights {weights[0]}" if weights else ""
    return (
        f"the loss {_name(loss)!r} at {call_site()}, of labels {labels} and outputs {outputs}, where B is the batch, "
        "is not the mean of what its examples give: it puts the examples of a batch together, and each rank has only "
        "its own. Give labels and outputs one shape, with an axis behind that of the batch, or migrate the script with "
        "--shard calls, where every rank has the whole batch"
    )


def _name(loss: Any) -> str:
    return str(getattr(loss, "name", type(loss).__name__))
