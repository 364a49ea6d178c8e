"""Weights in general position: a look reads others than there are, so that those that are nought hide nothing.

A layer that mixes rows behind weights that are nought, as many are at first, gives what one gives that does not. The
variables themselves stay as they are: other threads may read them meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

_SHARE = 0.5  # of the largest number


class _Thread(threading.local):
    moves: dict[int, Any] | None = None  # by the `id` of a variable's handle, by what its numbers are larger


_thread = _Thread()


def watch_reads() -> None:
    """From now on `in_general_position` works. What all reads of variables come through is private."""
    from tensorflow.python.ops import gen_resource_variable_ops as module

    original = module.read_variable_op

    @functools.wraps(original)
    def read_variable_op(resource: Any, dtype: Any, name: Any = None) -> Any:
        found = original(resource, dtype, name)
        if _thread.moves is None or not found.dtype.is_floating or not hasattr(found, "numpy"):
            return found
        if id(resource) not in _thread.moves:
            _thread.moves[id(resource)] = _move(found, len(_thread.moves))
        return found + _thread.moves[id(resource)]

    module.read_variable_op = read_variable_op


@contextlib.contextmanager
def in_general_position() -> Iterator[None]:
    """What this thread reads of variables inside, eagerly, is larger than it is, each time by as much."""
    _thread.moves = {}
    try:
        yield
    finally:
        _thread.moves = None


def moved(tensor: Any, seed: int) -> Any:
    """Other numbers than these: larger ones, by up to half of the largest of them."""
    return tensor + _move(tensor, seed)


def _move(tensor: Any, seed: int) -> Any:
    """Positive: a variance stays one."""
    numbers = np.random.default_rng(seed).uniform(0.1, 1.0, tensor.shape.as_list())
    largest = float(np.abs(np.asarray(tensor)).astype(np.float64).max(initial=0.0))
    scale = largest if 0 < largest < np.inf else 1.0
    return tf.cast(tf.constant(_SHARE * scale * numbers), tensor.dtype)
