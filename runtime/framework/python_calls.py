"""Python inside graphs, and computations that no tape sees."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf


def in_python(function: Callable[..., Any], tensors: Sequence[Any], dtype: Any, shape: Sequence[int]) -> Any:
    """`function` of the tensors' arrays: now, or where a graph comes to it."""
    if tf.executing_eagerly():
        return tf.constant(function(*(tensor.numpy() for tensor in tensors)), dtype)
    result = tf.numpy_function(function, tensors, dtype)
    result.set_shape(shape)
    return result


def unrecorded() -> contextlib.AbstractContextManager[None]:
    """What is computed inside is seen by no tape of this thread; in public only a tape's owner has that."""
    from tensorflow.python.eager import record

    found: contextlib.AbstractContextManager[None] = record.stop_recording()
    return found


@contextlib.contextmanager
def functions_run(*, eagerly: bool) -> Iterator[None]:
    """Each `tf.function` that is called inside runs eagerly, or is compiled."""
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(eagerly)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


def linked(output: Any, given: Any, gradient: Callable[[Any], Any]) -> Any:
    """`output`, which tapes take for made from `given`, and whose gradient is that one's by `gradient`.

    What made it is not to be recorded. Unlike with `tf.custom_gradient` a graph does not need `given` to compute it.
    """
    from tensorflow.python.eager import record

    record.record_operation("linked", [output], [given], lambda upstream: [gradient(upstream)])
    return output
