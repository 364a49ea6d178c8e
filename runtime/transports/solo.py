"""One worker: every collective is what it was given, and free."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from ..foundation import ReduceOp
from ._protocol import Label, Tensor


class Solo:
    """The transport of a job of one."""

    name = "solo"

    def allreduce(self, tensors: Sequence[Tensor], op: ReduceOp, label: Label) -> list[Tensor]:  # noqa: ARG002
        return list(tensors)

    def allgather(self, tensor: Tensor, label: Label) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        import tensorflow as tf

        return tensor, tf.shape(tensor, out_type=tf.int64)[:1]

    def broadcast(self, tensors: Sequence[Tensor], root: int, label: Label) -> list[Tensor]:  # noqa: ARG002
        return list(tensors)

    def broadcast_bytes(self, payload: bytes | None, root: int, label: Label) -> bytes:  # noqa: ARG002
        if payload is None:
            raise ValueError("broadcast_bytes on the root needs the bytes, not None")
        return payload

    def barrier(self, label: Label) -> None:
        pass

    def is_awaited(self) -> bool:
        return False

    def ended(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass
