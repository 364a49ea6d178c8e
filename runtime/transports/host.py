"""From TensorFlow's tensors to a transport that works on NumPy arrays in host memory, eagerly and in graphs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from ..foundation import ReduceOp
from ._protocol import Label, Tensor
from ._reduce import Array


class Wire(Protocol):
    """A transport on arrays: the calls of `Transport`, with C-contiguous arrays in and new ones out."""

    name: str

    def allreduce(self, arrays: Sequence[Array], op: ReduceOp, label: Label) -> list[Array]: ...
    def allgather(self, array: Array, label: Label) -> tuple[Array, Array]: ...
    def broadcast(self, arrays: Sequence[Array], root: int, label: Label) -> list[Array]: ...
    def broadcast_bytes(self, payload: bytes | None, root: int, label: Label) -> bytes: ...
    def barrier(self, label: Label) -> None: ...
    def is_awaited(self) -> bool: ...
    def ended(self) -> AbstractContextManager[None]: ...
    def close(self) -> None: ...


class OnHost:
    """A `Transport` made of a `Wire`. In a graph a call is one stateful op, so TensorFlow keeps the calls in order."""

    def __init__(self, wire: Wire) -> None:
        self.name = wire.name
        self._wire = wire

    def allreduce(self, tensors: Sequence[Tensor], op: ReduceOp, label: Label) -> list[Tensor]:
        def exchange(*arrays: Array) -> list[Array]:
            return self._wire.allreduce(arrays, op, label)

        return _run(exchange, tensors, [(tensor.dtype, tensor.shape) for tensor in tensors])

    def allgather(self, tensor: Tensor, label: Label) -> tuple[Tensor, Tensor]:
        def exchange(array: Array) -> list[Array]:
            return list(self._wire.allgather(array, label))

        gathered = tf.TensorShape([None]).concatenate(tensor.shape[1:])
        rows, counts = _run(exchange, [tensor], [(tensor.dtype, gathered), (tf.int64, tf.TensorShape([None]))])
        return rows, counts

    def broadcast(self, tensors: Sequence[Tensor], root: int, label: Label) -> list[Tensor]:
        def exchange(*arrays: Array) -> list[Array]:
            return self._wire.broadcast(arrays, root, label)

        return _run(exchange, tensors, [(tensor.dtype, tensor.shape) for tensor in tensors])

    def broadcast_bytes(self, payload: bytes | None, root: int, label: Label) -> bytes:
        return self._wire.broadcast_bytes(payload, root, label)

    def barrier(self, label: Label) -> None:
        def exchange() -> list[Array]:
            self._wire.barrier(label)
            return [np.zeros((), np.int64)]

        _run(exchange, [], [(tf.int64, tf.TensorShape([]))])

    def is_awaited(self) -> bool:
        return self._wire.is_awaited()

    def ended(self) -> AbstractContextManager[None]:
        return self._wire.ended()

    def close(self) -> None:
        # The mapping goes with the process: graphs that were traced may still hold it.
        self._wire.close()


def _run(
    exchange: Callable[..., list[Array]], tensors: Sequence[Tensor], results: Sequence[tuple[Any, Any]]
) -> list[Tensor]:
    def on_arrays(*arrays: Any) -> list[Array]:
        return exchange(*(np.ascontiguousarray(array).reshape(np.shape(array)) for array in arrays))

    if tf.executing_eagerly():
        return [tf.convert_to_tensor(array) for array in on_arrays(*map(_array, tensors))]

    outputs = tf.numpy_function(on_arrays, tensors, [dtype for dtype, _ in results], stateful=True)
    for output, (_, shape) in zip(outputs, results, strict=True):
        output.set_shape(shape)
    return list(outputs)


def _array(tensor: Tensor) -> Array:
    # The array of a scalar is a NumPy scalar, which asarray does not take from a tensor. Others are not copied.
    return np.asarray(tensor if tensor.shape.rank else tensor.numpy())
