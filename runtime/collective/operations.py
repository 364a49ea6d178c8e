"""Collective calls on tensors: eagerly and in a `tf.function`, with gradients where they make sense.

Every rank makes the same calls in the same order. With one worker each of them returns what it was given.
"""

import numbers
import pickle
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..foundation import Average, ReduceOp, Sum, call_site
from ..framework import as_written
from ..job import Job, current
from ..transports import Label, Tensor

_REDUCIBLE = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)
_LINEAR = (ReduceOp.AVERAGE, ReduceOp.SUM)


@as_written
def allreduce(tensor: Any, op: ReduceOp = Average, name: str | None = None) -> Tensor:
    """The tensor combined over all ranks: same shape and dtype, the same bits on every rank.

    Args:
        tensor: float16, bfloat16, float32, float64, int32 or int64, of the same shape on all ranks. Two-byte floats
            are summed in float32 and rounded once; the average of integers is truncated toward zero.
        op: `Average`, `Sum`, `Min`, `Max` or `Product`. Average and Sum can be differentiated.
        name: compared over the ranks, and used in messages.

    Raises:
        TypeError: another dtype, or `tf.IndexedSlices`.
        CollectiveMismatchError: the ranks disagree about the call.
        JobAborted, StallError: another rank is not coming.
    """
    return grouped_allreduce([tensor], op, name)[0]


@as_written
def grouped_allreduce(tensors: Sequence[Any], op: ReduceOp = Average, name: str | None = None) -> list[Tensor]:
    """`allreduce` of each tensor in one exchange. Dtypes may be mixed; the list has the same layout on all ranks."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op is {op!r}: it must be dp.Average, dp.Sum, dp.Min, dp.Max or dp.Product")
    job = current()
    given = [reducible(tensor) for tensor in tensors]
    if job.topology.size == 1 or not given:
        return given
    return exchanged(job, given, op, Label(name, call_site()))


def exchanged(job: Job, tensors: Sequence[Tensor], op: ReduceOp, label: Label) -> list[Tensor]:
    """The tensors, which have been made `reducible`, combined over several ranks in one exchange."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def reduced(*values: Tensor) -> Any:
        def gradient(*upstream: Tensor) -> list[Tensor | None]:
            if op not in _LINEAR:
                raise NotImplementedError(
                    f"allreduce with {op} at {label.site} cannot be differentiated; Average and Sum can. Use "
                    "tf.stop_gradient on its input if its value is only looked at"
                )
            return _gradients(job, values, upstream, op, label)

        return tuple(job.transport.allreduce(values, op, label)), gradient

    return list(reduced(*tensors))


def _gradients(
    job: Job, values: Sequence[Tensor], upstream: Sequence[Tensor], op: ReduceOp, label: Label
) -> list[Tensor | None]:
    """Both operations are linear and their matrix is symmetric, so the gradients are combined as the values were."""
    floating = [index for index, value in enumerate(values) if value.dtype.is_floating]
    tensors = [tf.convert_to_tensor(upstream[index]) for index in floating]
    found: list[Tensor | None] = [None] * len(values)
    if tensors:
        combined = _exchanged_gradients(job, tensors, op, label)
        for index, tensor in zip(floating, combined, strict=True):
            found[index] = tensor
    return found


def _exchanged_gradients(job: Job, upstream: Sequence[Tensor], op: ReduceOp, label: Label) -> list[Tensor]:
    """The gradients combined over the ranks."""
    return exchanged(job, upstream, op, Label(_gradient_name(label), label.site))


@as_written
def allgather(tensor: Any, name: str | None = None) -> Tensor:
    """All ranks' rows one after the other in rank order, shape `[sum of first dimensions, …]`.

    Args:
        tensor: at least one dimension; the first may differ by rank and be 0, the others are equal. Any numeric dtype,
            or bool. Can be differentiated: a rank's rows get the sum of all ranks' gradients for them.
        name: compared over the ranks, and used in messages.

    Raises:
        ValueError: a scalar.
        TypeError: a dtype without a fixed width, such as string.
    """
    job = current()
    given = _movable(tensor)
    if given.shape.rank == 0:
        raise ValueError("allgather of a scalar: it joins rows, so use tf.expand_dims(x, 0) for one row per rank")
    if job.topology.size == 1:
        return given
    label = Label(name, call_site())

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def gathered(value: Tensor) -> Any:
        rows, counts = job.transport.allgather(value, label)

        def gradient(upstream: Tensor) -> Tensor:
            total = _exchanged_gradients(job, [upstream], Sum, label)[0]
            start = tf.reduce_sum(counts[: job.topology.rank])
            return total[start : start + counts[job.topology.rank]]

        return rows, gradient

    return gathered(given)


@as_written
def broadcast(tensor: Any, root_rank: int = 0, name: str | None = None) -> Tensor:
    """The root's tensor, on every rank. Shapes and dtypes must be equal everywhere: any numeric dtype, or bool.

    Can be differentiated: the root's tensor gets the sum of all ranks' gradients, the others' get zeros.

    Raises:
        ValueError: `root_rank` is not a rank of the job.
    """
    job = current()
    given = _movable(tensor)
    _check_root(job, root_rank)
    if job.topology.size == 1:
        return given
    label = Label(name, call_site())

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def spread(value: Tensor) -> Any:
        def gradient(upstream: Tensor) -> Tensor:
            total = _exchanged_gradients(job, [upstream], Sum, label)[0]
            return total if job.topology.rank == root_rank else tf.zeros_like(total)

        return job.transport.broadcast([value], root_rank, label)[0], gradient

    return spread(given)


@as_written
def broadcast_variables(variables: Sequence[Any], root_rank: int = 0) -> None:
    """Give every variable the root's value, in place and in one exchange.

    Args:
        variables: `tf.Variable`s or Keras variables, the same list on every rank.
        root_rank: whose values.
    """
    job = current()
    _check_root(job, root_rank)
    listed = list(variables)
    if job.topology.size == 1 or not listed:
        return
    names = tuple(str(getattr(variable, "path", None) or variable.name) for variable in listed)
    values = [_movable(variable) for variable in listed]
    label = Label(None, call_site(), names)
    for variable, value in zip(listed, job.transport.broadcast(values, root_rank, label), strict=True):
        variable.assign(value)


@as_written
def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None) -> Any:
    """The root's object on every rank, by pickle; `obj` counts on the root only. Not inside a `tf.function`.

    What is unpickled has come from a rank of this job, over memory that only its processes have.
    """
    job = current()
    _check_root(job, root_rank)
    if not tf.executing_eagerly():
        raise RuntimeError(
            f"broadcast_object at {call_site()} is inside a tf.function: it would run once, when the function is "
            "traced. Call it outside, or use dp.broadcast for tensors"
        )
    if job.topology.size == 1:
        return obj
    root = job.topology.rank == root_rank
    payload = pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL) if root else None
    received = job.transport.broadcast_bytes(payload, root_rank, Label(name, call_site()))
    return obj if root else pickle.loads(received)


@as_written
def barrier(name: str | None = None) -> None:
    """Wait until every rank has come here. In a `tf.function`: when the graph comes here."""
    job = current()
    if job.topology.size > 1:
        job.transport.barrier(Label(name, call_site()))


def _gradient_name(label: Label) -> str | None:
    return None if label.name is None else f"gradient of {label.name}"


def reducible(tensor: Any) -> Tensor:
    """The tensor, if it has a dtype that can be combined.

    Raises:
        TypeError: it has not, or is sparse.
    """
    if isinstance(tensor, tf.IndexedSlices):
        raise TypeError(
            f"allreduce of tf.IndexedSlices at {call_site()}: dp.DistributedGradientTape averages sparse gradients; "
            "elsewhere use tf.convert_to_tensor first"
        )
    given = tf.convert_to_tensor(tensor)
    if given.dtype not in _REDUCIBLE:
        allowed = ", ".join(dtype.name for dtype in _REDUCIBLE)
        raise TypeError(f"allreduce of {given.dtype.name} at {call_site()}: use tf.cast to one of {allowed}")
    return given


def _movable(tensor: Any) -> Tensor:
    given = tf.convert_to_tensor(tensor)
    if not (given.dtype.is_floating or given.dtype.is_integer or given.dtype.is_bool or given.dtype.is_complex):
        raise TypeError(
            f"a tensor of dtype {given.dtype.name} at {call_site()} cannot be sent: numbers and bool can; "
            "dp.broadcast_object sends anything that can be pickled"
        )
    return given


def _check_root(job: Job, root_rank: Any) -> None:
    if not isinstance(root_rank, numbers.Integral):
        raise TypeError(f"root_rank is {root_rank!r} at {call_site()}: it must be an int, the same on all ranks")
    if not 0 <= int(root_rank) < job.topology.size:
        raise ValueError(f"root_rank is {root_rank} at {call_site()}: it must be 0 to {job.topology.size - 1}")
