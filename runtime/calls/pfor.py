"""`tf.vectorized_map` and Jacobians run a graph for many rows at once, and lose gradients that functions define."""

from __future__ import annotations

import functools
import threading
from typing import Any


class _Thread(threading.local):
    depth = 0


_thread = _Thread()


def is_tracing() -> bool:
    """Whether this thread makes a graph for `tf.vectorized_map`, `tape.jacobian` or `tape.batch_jacobian`."""
    return _thread.depth > 0


def watch_pfor() -> None:
    """From now on `is_tracing` knows. Nothing public tells it."""
    from tensorflow.python.ops.parallel_for import control_flow_ops

    original = control_flow_ops.pfor

    @functools.wraps(original)
    def pfor(*arguments: Any, **options: Any) -> Any:
        _thread.depth += 1
        try:
            return original(*arguments, **options)
        finally:
            _thread.depth -= 1

    control_flow_ops.pfor = pfor
