"""What a call does besides giving results: writes, tensors that it takes from outside, and those that it leaves."""

from __future__ import annotations

import contextlib
import functools
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from .sight import Undivided

# Of all operations with a state those that only read it.
READS = frozenset(
    (
        *("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarHandleOp", "VarIsInitializedOp", "Assert"),
        *("HashTableV2", "LookupTableFindV2", "LookupTableSizeV2"),
        *("StatefulPartitionedCall", "If", "While", "Case"),  # what they hold is seen by itself
    )
)
_HANDLES = (tf.resource, tf.variant)


class Observer:
    """Sees the operations that are executed eagerly in this thread, by TensorFlow's callbacks (as its debugger does)."""

    def __init__(self, writable: set[int]) -> None:
        """`writable`: ids of handles of variables that may be written."""
        self._writable = writable
        self._made: dict[int, weakref.ref[Any]] = {}
        self.from_outside: list[Any] = []
        self.written: list[Any] = []
        self.writes: list[str] = []

    def seen(  # noqa: PLR0917 - as TensorFlow calls it
        self, kind: str, inputs: Any, _: Any, outputs: Any, name: str | None = None, graph: Any = None
    ) -> None:
        """An operation has been executed."""
        if graph is not None:
            return
        for each in inputs:
            if each.dtype in _HANDLES:
                continue
            known = self._made.get(id(each))
            if each.dtype.is_floating and (known is None or known() is not each):
                self.from_outside.append(each)
        if has_state(kind) and kind not in READS:
            handles = [each for each in inputs if each.dtype in _HANDLES]
            self.written += handles
            if not handles or any(id(each) not in self._writable for each in handles):
                self.writes.append(kind)
        self._made.update((id(each), weakref.ref(each)) for each in outputs if each.dtype not in _HANDLES)

    def left(self) -> list[Any]:
        """Tensors that are still there, though nobody holds the results any more."""
        if not self._alive():
            return []
        gc.collect()
        return self._alive()

    def _alive(self) -> list[Any]:
        found = ((key, reference()) for key, reference in self._made.items())
        return [each for key, each in found if each is not None and id(each) == key]


@contextlib.contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """What is executed inside is seen. TensorFlow has no public function for it."""
    from tensorflow.python.framework import op_callbacks

    callback = observer.seen
    op_callbacks.add_op_callback(callback)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(callback)


@functools.cache
def has_state(operation: str) -> bool:
    """Whether TensorFlow says that the operation has a state; nothing public tells it of a name alone."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(operation)
    return bool(definition is None or definition.is_stateful)


def refuse_recorded(tensors: list[Any]) -> None:
    """Raise `Undivided` if one of the tensors is made from what a tape records: its gradient would be that of some
    rows. TensorFlow has no public function that says so."""
    from tensorflow.python.eager import record

    for each in tensors:
        if record.should_record_backprop([each]):
            raise Undivided(f"uses a tensor of shape {each.shape} that was computed outside from what is trained")
