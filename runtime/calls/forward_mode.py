"""`tf.autodiff.ForwardAccumulator` pushes tangents forward, which no division of rows knows of."""

from __future__ import annotations

import functools
import threading
from typing import Any

import tensorflow as tf

from ..framework import as_written

_ENTERED = "_tfdp_entered_while_accumulating"  # of a tape


class _Thread(threading.local):
    depth = 0


_thread = _Thread()


def is_accumulating() -> bool:
    """Whether an accumulator of this thread records: all workers then compute everything."""
    return _thread.depth > 0


def is_whole(tape: Any) -> bool:
    """Whether all that a tape records is computed by all workers: it was entered where an accumulator records."""
    return _ENTERED in vars(tape)


def watch_forward_mode() -> None:
    """From now on `is_accumulating` and `is_whole` know."""
    accumulator = tf.autodiff.ForwardAccumulator
    enter, leave = accumulator.__enter__, accumulator.__exit__

    @functools.wraps(enter)
    def entered(self: Any) -> Any:
        found = enter(self)
        _thread.depth += 1
        return found

    @functools.wraps(leave)
    def left(self: Any, *what: Any) -> Any:
        _thread.depth -= 1
        return leave(self, *what)

    accumulator.__enter__, accumulator.__exit__ = entered, left
    begin = tf.GradientTape.__enter__

    @functools.wraps(begin)
    def begun(self: Any) -> Any:
        vars(self).pop(_ENTERED, None)
        if is_accumulating():
            vars(self)[_ENTERED] = True
        return begin(self)

    tf.GradientTape.__enter__ = as_written(begun)
