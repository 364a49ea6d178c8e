"""`tf.IndexedSlices` over the ranks: all ranks' slices one after the other, of several gradients in one exchange."""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..job import Job
from ..transports import Label

_COUNT_BYTES = 8


def gather(tensors: Sequence[Any], job: Job, label: Label) -> list[Any]:
    """Of each tensor all ranks' rows, in rank order; one exchange for all of them. It cannot be differentiated.

    Args:
        tensors: numbers, also of mixed dtypes, at least one dimension; the first may differ by rank.
    """

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def gathered(*values: Any) -> Any:
        def gradient(*_: Any) -> Any:
            raise NotImplementedError(
                f"sparse gradients that were gathered at {label.site} cannot be differentiated: take gradients of "
                "gradients from the tf.GradientTape itself, or use sparse_as_dense=True"
            )

        return tuple(_gather(values, job, label)), gradient

    return list(gathered(*tensors))


def _gather(tensors: Sequence[Any], job: Job, label: Label) -> list[Any]:
    if len(tensors) == 1 or not all(tensor.shape[1:].is_fully_defined() for tensor in tensors):
        return [job.transport.allgather(tensor, label)[0] for tensor in tensors]
    counts = tf.stack([tf.shape(tensor, tf.int64)[0] for tensor in tensors])
    payload = tf.concat([_bytes(counts), *map(_bytes, tensors)], 0)
    received, lengths = job.transport.allgather(payload, label)
    starts = tf.cumsum(lengths, exclusive=True)
    parts = [_unpacked(received[starts[rank] :], tensors) for rank in range(job.topology.size)]
    return [tf.concat(rows, 0) for rows in zip(*parts, strict=True)]


def deduplicated(slices: tf.IndexedSlices) -> tf.IndexedSlices:
    """Slices of one row added up, rows in the order of their first slice."""
    rows, positions = tf.unique(slices.indices)
    values = tf.math.unsorted_segment_sum(slices.values, positions, tf.shape(rows)[0])
    return tf.IndexedSlices(values, rows, slices.dense_shape)


def _unpacked(data: Any, like: Sequence[Any]) -> list[Any]:
    """One rank's tensors from the beginning of `data`."""
    at = _COUNT_BYTES * len(like)
    counts = tf.bitcast(tf.reshape(data[:at], [len(like), _COUNT_BYTES]), tf.int64)
    found = []
    for index, tensor in enumerate(like):
        row, size = tensor.shape[1:].as_list(), tensor.dtype.size
        end = at + counts[index] * (math.prod(row) * size)
        rows = tf.reshape(data[at:end], tf.concat([counts[index : index + 1], [*row, size]], 0))
        found.append(tf.ensure_shape(_numbers(rows, tensor.dtype), [None, *row]))
        at = end
    return found


def _bytes(tensor: Any) -> Any:
    return tf.reshape(tensor if tensor.dtype == tf.uint8 else tf.bitcast(tensor, tf.uint8), [-1])


def _numbers(rows: Any, dtype: Any) -> Any:
    return tf.bitcast(tf.squeeze(rows, -1) if dtype.size == 1 else rows, dtype)
