"""What `tf.data` maps over its elements runs in threads of its own, ahead of the script: every worker computes it."""

from __future__ import annotations

import functools
import threading
from typing import Any

from ..framework import as_written

_LOOPS = ("reduce", "scan", "take_while")


class _Thread(threading.local):
    depth = 0


_thread = _Thread()


def is_tracing() -> bool:
    """Whether this thread makes a graph for a stage of a dataset. What AutoGraph makes of a loop over one is none."""
    return _thread.depth > 0


def watch_pipelines() -> None:
    """From now on `is_tracing` knows. Nothing public tells it."""
    from tensorflow.python.data.ops import structured_function

    wrapper = structured_function.StructuredFunctionWrapper
    original = wrapper.__init__

    @functools.wraps(original)
    def __init__(self: Any, func: Any, transformation_name: str, *arguments: Any, **options: Any) -> None:  # noqa: N807
        is_stage = not any(name in transformation_name for name in _LOOPS)
        _thread.depth += is_stage
        try:
            original(self, func, transformation_name, *arguments, **options)
        finally:
            _thread.depth -= is_stage

    wrapper.__init__ = as_written(__init__)
