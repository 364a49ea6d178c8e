"""What `tfdp.runtime.collective` asks of a way between the ranks."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from ..foundation import ReduceOp

# A TensorFlow tensor. TensorFlow ships no types, and nothing here imports it.
Tensor = Any


@dataclass(frozen=True)
class Label:
    """What a collective is called in messages: the name the user gave it, if any, and the place of the call.

    The name must be the same on all ranks; the place need not be. `tensors` may name the tensors (of a
    `broadcast_variables`, say), for messages only.
    """

    name: str | None = None
    site: str = "an unknown place"
    tensors: tuple[str, ...] = ()


class Transport(Protocol):
    """One way between the ranks of a job. Every rank makes the same calls in the same order.

    Each call works eagerly and while a `tf.function` is traced; the tensors it returns have the dtypes of those given,
    and are bit for bit the same on every rank.
    """

    name: str

    def allreduce(self, tensors: Sequence[Tensor], op: ReduceOp, label: Label) -> list[Tensor]:
        """Each tensor combined over the ranks, in rank order."""

    def allgather(self, tensor: Tensor, label: Label) -> tuple[Tensor, Tensor]:
        """All ranks' rows one after the other, and how many each had (int64, shape `[size]`)."""

    def broadcast(self, tensors: Sequence[Tensor], root: int, label: Label) -> list[Tensor]:
        """The root's tensors."""

    def broadcast_bytes(self, payload: bytes | None, root: int, label: Label) -> bytes:
        """The root's bytes (`payload` counts on the root only). Not for use inside a `tf.function`."""

    def barrier(self, label: Label) -> None:
        """Returns, or lets the graph go on, when every rank has called it."""

    def is_awaited(self) -> bool:
        """Whether rank 0 has begun a call that this rank has not."""

    def ended(self) -> AbstractContextManager[None]:
        """Whoever waits for this rank is told that its script has ended, and that it waits for that of all others."""

    def close(self) -> None:
        """Let go of what the transport holds. No call may follow."""
