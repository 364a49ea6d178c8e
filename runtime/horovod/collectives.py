"""Horovod's collective functions, in its order of arguments. Devices, names and groups are taken and mean nothing."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .. import collective, job
from ..foundation import Average, ReduceOp, Sum, call_site
from ..framework import as_written, stream_element
from ..gradients import Compression
from .options import global_process_set, reduction, refuse_process_set

_BYTES = (tf.int8, tf.uint8)


@as_written
def allreduce(  # noqa: PLR0917 - Horovod's order
    tensor: Any,
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    process_set: Any = global_process_set,
    ignore_name_scope: bool = False,
) -> Any:
    """The tensor combined over all ranks; of `tf.IndexedSlices` all ranks' slices, divided by their number to average.

    Raises:
        ValueError: both `average` and `op`.
        NotImplementedError: slices with a scale, or another op than Average and Sum.
    """
    del device_dense, device_sparse, ignore_name_scope
    refuse_process_set(process_set)
    how = reduction(average, op)
    if isinstance(tensor, tf.IndexedSlices):
        if prescale_factor != 1.0 or postscale_factor != 1.0 or how not in (Average, Sum):
            raise NotImplementedError(f"allreduce of IndexedSlices at {call_site()}: averaged or added up, not scaled")
        return _all_slices(tensor, how)
    return _reduced([tensor], how, compression, prescale_factor, postscale_factor, name)[0]


@as_written
def grouped_allreduce(  # noqa: PLR0917 - Horovod's order
    tensors: Sequence[Any],
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = global_process_set,
    ignore_name_scope: bool = False,
    name: str | None = None,
) -> list[Any]:
    """`allreduce` of each tensor, in one exchange for all that are dense."""
    del device_dense, device_sparse, ignore_name_scope
    refuse_process_set(process_set)
    how = reduction(average, op)
    dense = [each for each in tensors if not isinstance(each, tf.IndexedSlices)]
    found = iter(_reduced(dense, how, compression, prescale_factor, postscale_factor, name))
    scales = {"prescale_factor": prescale_factor, "postscale_factor": postscale_factor}
    sparse = [isinstance(each, tf.IndexedSlices) for each in tensors]
    return [
        allreduce(each, op=how, **scales) if is_sparse else next(found)  # type: ignore[arg-type]
        for each, is_sparse in zip(tensors, sparse, strict=True)
    ]


def _reduced(  # noqa: PLR0917
    tensors: Sequence[Any], op: ReduceOp, compression: Any, before: float, after: float, name: str | None
) -> list[Any]:
    given = [tf.convert_to_tensor(each) for each in tensors]
    if any(each.dtype in _BYTES for each in given):
        whole = [tf.cast(each, tf.int32) if each.dtype in _BYTES else each for each in given]
        found = _reduced(whole, op, compression, before, after, name)
        return [tf.cast(each, one.dtype) for each, one in zip(found, given, strict=True)]
    sent = [compression.compress(each) for each in given]
    scaled = [_times(tensor, before) for tensor, _ in sent]
    if len(scaled) == 1:
        received = [collective.allreduce(scaled[0], op, name)]
    else:
        received = collective.grouped_allreduce(scaled, op, name)
    pairs = zip(received, sent, strict=True)
    return [compression.decompress(_times(tensor, after), context) for tensor, (_, context) in pairs]


def _times(tensor: Any, factor: float) -> Any:
    if factor == 1.0:
        return tensor
    wide = tensor if tensor.dtype.is_floating else tf.cast(tensor, tf.float64)
    return tf.cast(wide * tf.cast(factor, wide.dtype), tensor.dtype)


def _all_slices(slices: Any, op: ReduceOp) -> Any:
    values = collective.allgather(slices.values)
    indices = collective.allgather(slices.indices)
    divided = values / tf.cast(job.size(), values.dtype) if op is Average else values
    return tf.IndexedSlices(divided, indices, slices.dense_shape)


@as_written
def allgather(
    tensor: Any, name: str | None = None, ignore_name_scope: bool = False, process_set: Any = global_process_set
) -> Any:
    """All ranks' rows one after the other, in the order of the ranks."""
    del ignore_name_scope
    refuse_process_set(process_set)
    return collective.allgather(_with_mean_gradient(tensor), name)


@as_written
def grouped_allgather(
    tensors: Sequence[Any],
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: Any = global_process_set,
) -> list[Any]:
    """`allgather` of each tensor."""
    del name
    return [allgather(each, None, ignore_name_scope, process_set) for each in tensors]


@as_written
def broadcast(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: Any = global_process_set,
) -> Any:
    """The root's tensor, on every rank."""
    del ignore_name_scope
    refuse_process_set(process_set)
    return collective.broadcast(_with_mean_gradient(tensor), root_rank, name)


def _with_mean_gradient(tensor: Any) -> Any:
    """The tensor, whose gradient is divided by the number of ranks: Horovod takes the mean of all ranks' gradients."""
    given = tf.convert_to_tensor(tensor)
    if not given.dtype.is_floating:
        return given
    ranks = job.size()

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def same(value: Any) -> Any:
        return tf.identity(value), lambda upstream: upstream / tf.cast(ranks, upstream.dtype)

    return same(given)


@as_written
def broadcast_variables(
    variables: Any, root_rank: int, process_set: Any = global_process_set, inplace: bool = False
) -> None:
    """Every variable takes the root's value. `variables`: a list, or a method that gives it (`optimizer.variables`)."""
    del inplace
    refuse_process_set(process_set)
    collective.broadcast_variables(shared(_listed(variables)), root_rank)


@as_written
def broadcast_(
    variables: Any, root_rank: int, name: str | None = None, process_set: Any = global_process_set
) -> list[Any]:
    """`broadcast_variables`, which returns the variables."""
    del name
    refuse_process_set(process_set)
    listed = _listed(variables)
    collective.broadcast_variables(shared(listed), root_rank)
    return listed


def shared(variables: Sequence[Any]) -> list[Any]:
    """Without the states of Keras 3's generators, which it lists among a model's variables: each rank draws by its own,
    as it does with Keras 2."""
    return [each for each in variables if not (hasattr(each, "path") and stream_element(each.name) is not None)]


def _listed(variables: Any) -> list[Any]:
    return list(variables() if callable(variables) else variables)


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> Any:
    """The root's object, on every rank, by cloudpickle where that is installed: functions, too."""
    del session
    refuse_process_set(process_set)
    if job.size() == 1:
        return obj
    payload = _pickled(obj) if job.rank() == root_rank else b""
    received = collective.broadcast_object(payload, root_rank, name)
    return obj if job.rank() == root_rank else pickle.loads(received)


def _pickled(obj: Any) -> bytes:
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL)
    packed: bytes = cloudpickle.dumps(obj)
    return packed


def allgather_object(
    obj: Any, session: Any = None, name: str | None = None, process_set: Any = global_process_set
) -> list[Any]:
    """All ranks' objects, in the order of the ranks."""
    del session
    refuse_process_set(process_set)
    payload = np.frombuffer(_pickled(obj), np.uint8)
    lengths = collective.allgather(tf.constant([len(payload)], tf.int64), None if name is None else f"{name}.sizes")
    parts = tf.split(collective.allgather(tf.constant(payload), name), lengths)
    return [pickle.loads(part.numpy().tobytes()) for part in parts]


def broadcast_global_variables(root_rank: int) -> None:
    """For sessions of TensorFlow 1, as with Horovod.

    Raises:
        RuntimeError: always: outside of sessions nothing knows all variables.
    """
    raise RuntimeError(
        f"broadcast_global_variables({root_rank}) at {call_site()} is for sessions of TensorFlow 1: use "
        "broadcast_variables(variables, root_rank)"
    )


def size_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """The number of ranks, as an int32 tensor."""
    del process_set_id
    return tf.constant(job.size(), tf.int32, name=name)


def rank_op(name: str | None = None) -> Any:
    """This process's number, as an int32 tensor."""
    return tf.constant(job.rank(), tf.int32, name=name)


def local_size_op(name: str | None = None) -> Any:
    """How many ranks are on this host, as an int32 tensor."""
    return tf.constant(job.local_size(), tf.int32, name=name)


def local_rank_op(name: str | None = None) -> Any:
    """This process's number on its host, as an int32 tensor."""
    return tf.constant(job.local_rank(), tf.int32, name=name)
