"""`tf.autodiff.ForwardAccumulator` pushes tangents forward, which no division of rows knows of."""

from __future__ import annotations

import functools
import threading
from typing import Any

import tensorflow as tf


class _Thread(threading.local):
    depth = 0


_thread = _Thread()


def is_accumulating() -> bool:
    """Whether an accumulator of this thread records: all workers then compute everything."""
    return _thread.depth > 0


def watch_forward_mode() -> None:
    """From now on `is_accumulating` knows."""
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
