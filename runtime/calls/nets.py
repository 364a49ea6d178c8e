"""What must be equal on all workers, seen to be so: what enters divided calls, what is differentiated, gradients.

Two numbers of each such tensor travel with the next gradients: a sum in which each of its elements counts differently,
and a bound of the sum of its absolute values, by which differences of rounding are measured.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import TfdpError, call_site
from ..framework import as_written, floats_of, half_bytes, in_python, unrecorded
from ..job import current

_NOTES = "_tfdp_notes"  # of a graph: what has been noted in it since its last exchange of gradients
_EXACT = (tf.float32, tf.float64)  # hold the numbers as they are
_NUMBERS = 2  # of a tensor
_NEAR = 1e-5  # of the sum of absolute values: GPU kernels that add in any order differ by less
_LEAST = 1e-15  # of that sum: squares of less than its root are no float32
_GOLDEN = 0.6180339887498949  # multiples of which fall evenly between whole numbers (Weyl)
_IN_GRAPH = 65536  # numbers that a graph may hold as a constant
_MOST = 2000  # notes between two exchanges


_eager = threading.local()


def noted(kind: str = _NOTES) -> list[tuple[str, Any]]:
    """What has been noted since the last exchange of gradients of this graph, or of this thread outside of graphs.

    kind: the attribute under which it is kept.
    """
    holder = _eager if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    if not hasattr(holder, kind):
        setattr(holder, kind, [])
    found: list[tuple[str, Any]] = getattr(holder, kind)
    return found


@as_written
def note(what: str, tensor: Any) -> None:
    """Compare a tensor over the workers with the next exchange of gradients of this graph; `what` names it."""
    if tensor is None or not hasattr(tensor, "dtype"):
        return
    if isinstance(tensor, tf.IndexedSlices):
        note(f"{what} (its rows)", tensor.indices)
        tensor = tensor.values
    if not _is_number(tensor.dtype):
        return
    with unrecorded(), tf.name_scope("compared"):
        notes = noted()
        notes.append((what, _in_one(_numbers, tensor)))
        del notes[:-_MOST]


def _is_number(dtype: Any) -> bool:
    return bool(dtype.is_floating or dtype.is_integer or dtype.is_bool or dtype.is_complex)


def _in_one(function: Callable[..., Any], tensor: Any, *settings: Any) -> Any:
    """`function(tensor, *settings)`, as one operation where it runs eagerly: ten take longer than a small network."""
    if not tf.executing_eagerly():
        return function(tensor, *settings)
    tensor = tf.convert_to_tensor(tensor)
    return _compiled(function, tensor.dtype, *settings)(tensor)


@functools.cache
def _compiled(function: Callable[..., Any], dtype: tf.DType, *settings: Any) -> Any:
    def run(tensor: Any) -> Any:
        return function(tensor, *settings)

    return tf.function(run, input_signature=[tf.TensorSpec(None, dtype)], autograph=False)


def _numbers(tensor: Any) -> Any:
    """Shape `[2]`, float32: a sum in which each element counts differently, and at least that of the absolute values.

    The second is the root of the number of elements times the sum of squares (Cauchy and Schwarz), which takes one pass
    and no memory: on a CPU the sum of absolute values costs four times as much.
    """
    value = tf.math.real(tensor) + tf.math.imag(tensor) if tensor.dtype.is_complex else tensor
    value = tf.cast(value, tf.float32)
    length, width = _sizes(value)
    rows = tf.reshape(value, [length, width])
    weighted = tf.reduce_sum(_row_sums(rows, _weights(width)) * _weights(length))
    number = tf.cast(length * width, tf.float32)
    return tf.stack([weighted, tf.maximum(tf.sqrt(number * 2.0 * tf.nn.l2_loss(rows)), _LEAST)])


def _sizes(value: Any) -> tuple[Any, Any]:
    """The number of rows, and that of the elements of each."""
    if value.shape.is_fully_defined():
        length = value.shape[0] if value.shape.rank else 1
        return length, value.shape.num_elements() // max(length, 1)
    length = tf.concat([tf.shape(value), [1]], 0)[0]  # 1 for a scalar
    return length, tf.size(value) // tf.maximum(length, 1)


def _weights(number: Any) -> Any:
    """As many numbers from 1 to 2 as are asked for, no two alike, shape `[number]`."""
    if isinstance(number, int) and number <= _IN_GRAPH:
        return tf.constant(1.0 + np.arange(number) * _GOLDEN % 1.0, tf.float32)
    return tf.cast(1.0 + tf.range(tf.cast(number, tf.float64), dtype=tf.float64) * _GOLDEN % 1.0, tf.float32)


def _row_sums(rows: Any, weights: Any) -> Any:
    """Of each row its elements, weighted, shape `[rows]`.

    On GPUs by no product of matrices, of which they cut the digits (TensorFloat-32), each kind of them in its own way.
    """
    if tf.config.list_logical_devices("GPU"):
        return tf.reduce_sum(rows * weights, 1)
    return tf.linalg.matvec(rows, weights)


class Notes:
    """What has been noted since the last exchange, as a passenger of this one (`gradients.Passenger`)."""

    def __init__(self) -> None:
        notes = noted()
        self._names, self._values = [name for name, _ in notes], [numbers for _, numbers in notes]
        notes.clear()
        self._site = call_site()

    def sent(self, dtype: tf.DType) -> Any:
        """This rank's numbers at its place in a vector of zeros, as half bytes where `dtype` does not hold a float32;
        `[]` where nothing was noted."""
        rank, size = current().topology.rank, current().topology.size
        with tf.device("CPU:0"):
            noted = tf.stack(self._values) if self._values else tf.zeros([0, _NUMBERS])
            return _in_one(_sent, noted, dtype, rank, size)

    def received(self, total: Any, ranks: int) -> None:
        """Look at what has come: the sum of all ranks' vectors, or their average over `ranks`.

        Raises:
            TfdpError: a tensor differs; on every rank, with what it is.
        """
        if not self._names:
            return
        with tf.device("CPU:0"):
            numbers = _in_one(_received, total, ranks, current().topology.size)
            alike = _in_one(_alike, numbers)
            if tf.executing_eagerly():
                if not bool(alike):
                    self._look(numbers)
                return
            tf.cond(alike, lambda: tf.constant(True), lambda: self._look(numbers))

    def _look(self, numbers: Any) -> Any:
        """Refuse what differs by more than rounding."""
        different = _in_one(_different, numbers)
        if tf.executing_eagerly():
            return self._refuse(different) if bool(tf.reduce_any(different)) else None
        return tf.cond(tf.reduce_any(different), lambda: self._refuse(different), lambda: tf.constant(True))

    def _refuse(self, different: Any) -> Any:
        return in_python(lambda found: _raise(self._names, found, self._site), [different], tf.bool, [])


def _sent(noted: Any, dtype: tf.DType, rank: int, size: int) -> Any:
    """What is noted, shape `[notes, 2]`, at this rank's place."""
    numbers = tf.reshape(noted, [-1])
    if dtype not in _EXACT:
        numbers = half_bytes(tf.bitcast(numbers, tf.uint8))
    width = numbers.shape[0] if numbers.shape[0] is not None else tf.size(numbers)
    return tf.pad(tf.cast(numbers, dtype), [[rank * width, (size - 1 - rank) * width]])


def _received(total: Any, ranks: int, size: int) -> Any:
    """What all have sent, shape `[size, notes, 2]`, float32, of its sum, or of its average over `ranks`."""
    whole = tf.cast(total, tf.float32) * ranks if ranks > 1 else tf.cast(total, tf.float32)
    if total.dtype in _EXACT:
        return tf.reshape(whole, [size, -1, _NUMBERS])
    return floats_of(tf.reshape(tf.cast(tf.round(whole), tf.int32), [size, -1, _NUMBERS, 4, 2]))


def _alike(numbers: Any) -> Any:
    """Whether all workers' are rank 0's to the last bit, which takes few operations."""
    return tf.reduce_all(numbers == numbers[:1])


def _different(numbers: Any) -> Any:
    """For each rank and note whether it is not rank 0's, shape `[size, notes]`."""
    sums, absolute = tf.unstack(numbers, _NUMBERS, axis=2)
    # Infinite sums leave no difference that could be compared: NaN, or less than an infinite limit.
    far = tf.abs(sums - sums[:1]) > _NEAR * absolute[:1]
    nan = tf.math.is_nan(sums)
    return far | (nan != nan[:1])


def _raise(names: Sequence[str], different: Any, site: str) -> Any:
    index = int(different.any(0).argmax())
    ranks = [str(rank) for rank in range(len(different)) if different[rank, index]]
    raise TfdpError(
        f"{names[index]} differs between rank 0 and rank(s) {', '.join(ranks)}, seen with the gradients at {site}. "
        "With sharded calls every worker holds the same batch and computes the same loss: something gives a worker "
        "values of its own, such as a process number, datetime.now(), a file that the job writes and another package "
        "reads, random numbers that several threads, or turns of tf.map_fn, draw at once, shuffled data that repeat, "
        "are read ahead (prefetch) and begun anew before they are through, or rows that a divided call has left "
        "where the loss reads them. Give it the same value on all workers, such as dp.broadcast_object(value)"
    )
