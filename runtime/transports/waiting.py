"""Tensors that exchanges wait for by their data.

TensorFlow's control dependencies do not reach into functions that it puts in the place of their calls, as it does with
loops and branches that have gradients.
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any


class _Thread(threading.local):
    tensors: Sequence[Any] = ()


_thread = _Thread()


def awaited() -> Sequence[Any]:
    """What exchanges that this thread builds into a graph take besides."""
    return _thread.tensors


@contextlib.contextmanager
def waiting_for(tensors: Sequence[Any]) -> Iterator[None]:
    """Exchanges inside wait for small tensors, and for those that they wait for already."""
    before, _thread.tensors = _thread.tensors, [*_thread.tensors, *tensors]
    try:
        yield
    finally:
        _thread.tensors = before
