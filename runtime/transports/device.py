"""Collectives of TensorFlow itself: NCCL between GPUs, a ring over TCP between CPUs. The same graph for both.

All that is exchanged goes through two operations, `CollectiveReduceV2` and `CollectiveGatherV2`: TensorFlow keeps these
in the order of the program by itself, so nothing has to be left on the user's objects. It does not do so with its
broadcasts, so a broadcast is a sum to which only the root adds anything.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
import tensorflow as tf

from ..foundation import ReduceOp, Topology
from . import _words
from ._call import Call
from ._exchange import Exchange, Request, Shape, elements
from ._lane import Lane
from ._protocol import Label, Tensor
from ._tiers import Tiers

_MERGE = {
    ReduceOp.AVERAGE: "Add",
    ReduceOp.SUM: "Add",
    ReduceOp.MIN: "Min",
    ReduceOp.MAX: "Max",
    ReduceOp.PRODUCT: "Mul",
}


class Device:
    """A `Transport` over TensorFlow's collectives.

    Floating-point numbers are added in the order of the ring, which is not that of the ranks; all ranks get the same
    bits, in every run.
    """

    def __init__(self, lane: Lane, topology: Topology, hint: str, tiers: Tiers | None = None) -> None:
        """`hint` is `nccl`, with the exchange on this process's GPU, or `ring`, with it on the CPU, and by `tiers`."""
        self.name = "two_tier" if tiers is not None else hint
        self._exchange = Exchange(lane, topology.size, hint, tiers)
        self._rank, self._size = topology.rank, topology.size
        self._device = "GPU:0" if hint == "nccl" else "CPU:0"

    def allreduce(self, tensors: Sequence[Tensor], op: ReduceOp, label: Label) -> list[Tensor]:
        with tf.name_scope("tfdp_allreduce"), tf.device(self._device):
            flats = [tf.reshape(tf.cast(each, _words.wire(each.dtype)), [-1]) for each in tensors]
            request = Request(f"allreduce {op}", label, elements)
            totals, ranks = self._exchange.reduce(request, tensors, flats, _MERGE[op])
            if op is ReduceOp.AVERAGE:
                totals = [_divided(each, tf.cast(ranks, each.dtype)) for each in totals]
            return [_like(tf.cast(each, given.dtype), given) for each, given in zip(totals, tensors, strict=True)]

    def allgather(self, tensor: Tensor, label: Label) -> tuple[Tensor, Tensor]:
        with tf.name_scope("tfdp_allgather"), tf.device(self._device):
            mine = _words.pack(tensor)
            every, counts = self._exchange.gather(Request("allgather", label, _length), tensor, mine)
            by_rank = _words.unpack(every, tensor.dtype)
            row, rows = tf.shape(tensor)[1:], tf.cast(counts, tf.int32)
            sizes = rows * tf.reduce_prod(row)
            joined = tf.concat([by_rank[rank, : sizes[rank]] for rank in range(self._size)], 0)
            gathered = tf.reshape(joined, tf.concat([tf.reduce_sum(rows)[None], row], 0))
        gathered.set_shape(tf.TensorShape([None]).concatenate(tensor.shape[1:]))
        return gathered, counts

    def broadcast(self, tensors: Sequence[Tensor], root: int, label: Label) -> list[Tensor]:
        with tf.name_scope("tfdp_broadcast"), tf.device(self._device):
            words = [_words.pack(each) for each in tensors]
            if self._rank != root:
                words = [tf.zeros_like(each) for each in words]
            request = Request(f"broadcast from rank {root}", label, _length)
            roots, _ = self._exchange.reduce(request, tensors, words, "Add")
            values = (_words.unpack(each, given.dtype) for each, given in zip(roots, tensors, strict=True))
            return [_like(value[: tf.size(given)], given) for value, given in zip(values, tensors, strict=True)]

    def broadcast_bytes(self, payload: bytes | None, root: int, label: Label) -> bytes:
        mine = (payload or b"") if self._rank == root else b""
        exchange = self._exchange
        numbers = exchange.lane.enter(Call(f"broadcast_object from rank {root}", (), label), len(mine))
        with exchange.held():
            size, _ = numbers[root]
            key, width = exchange.keys.take("int64 Add", -(-size // 8), varies=True)
            words = np.zeros(width, np.int64)
            words.view(np.uint8)[: len(mine)] = np.frombuffer(mine, np.uint8)
            with tf.device(self._device):
                roots = exchange.ways.reduced(tf.constant(words), tf.constant(key), "Add").numpy()
        return bytes(roots.view(np.uint8)[:size])

    def barrier(self, label: Label) -> None:
        self._exchange.meet(Call("barrier", (), label))

    def is_awaited(self) -> bool:
        return self._exchange.lane.is_awaited()

    def ended(self) -> AbstractContextManager[None]:
        return self._exchange.lane.ended()

    def close(self) -> None:
        # TensorFlow's server ends with the process: graphs that were traced may still use it.
        self._exchange.lane.close()


def _length(dtype: object, shape: Shape) -> int:
    return _words.count(dtype, math.prod(shape))


def _divided(total: Tensor, count: Tensor) -> Tensor:
    return total / count if total.dtype.is_floating else tf.truncatediv(total, count)


def _like(flat: Tensor, given: Tensor) -> Tensor:
    """The vector in the shape of the tensor that was given."""
    if given.shape.is_fully_defined():
        return tf.reshape(flat, given.shape)
    shaped = tf.reshape(flat, tf.shape(given))
    shaped.set_shape(given.shape)
    return shaped
