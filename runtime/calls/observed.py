"""What a call does besides giving results: writes, tensors that it takes from outside, and those that it leaves."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorflow as tf

from ..framework import only_reads
from .carried import LOGITS, MASK
from .rounding import limit_of
from .sight import is_lookup

_READS_TABLE = ("ReadVariableOp",)
_SAME = ("Identity", "Cast", "Reshape", "StopGradient")
_LOOKUPS = ("ResourceGather", "ResourceGatherNd", "GatherV2", "GatherNd", "Gather")
_HANDLES = (tf.resource, tf.variant)


class Observer:
    """Sees the operations that are executed eagerly in this thread, as TensorFlow's debugger does."""

    def __init__(self, writable: set[int], given: Iterable[Any]) -> None:
        """writable: ids of handles of variables that may be written. given: what the call is given; kept elsewhere."""
        self._writable = writable
        self._given = set(map(id, given))
        self._made: dict[int, weakref.ref[Any]] = {}
        self._tables: dict[int, weakref.ref[Any]] = {}
        self._unknown: list[weakref.ref[Any]] = []
        self.written: list[Any] = []
        self.reasons: list[str] = []
        self.rounding = 0.0  # of the coarsest numbers that it gives

    def seen(
        self, kind: str | bytes, inputs: Any, _: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        """An operation has been executed."""
        if graph is not None:  # an operation of a graph that is made: op_name is its name
            return
        del op_name
        kind = kind.decode() if isinstance(kind, bytes) else kind  # TensorFlow gives either
        for each in inputs:
            if each.dtype in _HANDLES:
                continue
            known = self._made.get(id(each))
            if each.dtype.is_floating and id(each) not in self._given and (known is None or known() is not each):
                self._unknown.append(weakref.ref(each))
        if not only_reads(kind):
            handles = [each for each in inputs if each.dtype in _HANDLES]
            self.written += handles
            if not handles or any(id(each) not in self._writable for each in handles):
                self.reasons.append(f"keeps a state, or does more than to compute (operation {kind})")
        self.rounding = max([self.rounding, *(limit_of(each.dtype) for each in outputs if each.dtype.is_floating)])
        self._see_lookups(kind, inputs, outputs)
        self._made.update((id(each), weakref.ref(each)) for each in outputs if each.dtype not in _HANDLES)

    def _see_lookups(self, kind: str, inputs: Any, outputs: Any) -> None:
        """Rows of a variable taken by no Embedding layer: their gradient's slices would be those of some rows."""
        first = inputs[0] if inputs else None
        known = self._tables.get(id(first))
        if kind in _READS_TABLE or (kind in _SAME and known is not None and known() is first):
            self._tables.update((id(each), weakref.ref(each)) for each in outputs)
            return
        is_table = first is not None and (first.dtype in _HANDLES or (known is not None and known() is first))
        if kind in _LOOKUPS and is_table and not is_lookup():
            self.reasons.append("looks up rows of a variable by itself, not by an Embedding layer")

    def from_outside(self) -> list[Any]:
        """Tensors that were used, and neither made nor given. Constants of the call are gone by now."""
        return _kept(lambda: [each for each in (reference() for reference in self._unknown) if each is not None])

    def left(self, held: Iterable[Any]) -> list[Any]:
        """Tensors that are still there, though nobody holds the results any more, but those that the look holds."""
        known = set(map(id, held))
        return _kept(lambda: self._alive(known))

    def _alive(self, held: set[int]) -> list[Any]:
        found: list[Any] = []
        for key, reference in self._made.items():
            each = reference()
            if each is not None and key not in held and id(each) == key and not self._is_lost(each):
                found.append(each)
        return found

    def _is_lost(self, tensor: Any) -> bool:
        """Whether only attributes of tensors hold this one: the script cannot come to it, or to a tensor that is found
        by itself. What holds attributes is a tensor, a dictionary, or unknown to Python.
        """
        if not _keeps_attributes():
            return False
        stack = set(map(id, _frames()))
        holders = [each for each in gc.get_referrers(tensor) if id(each) not in stack and id(each) not in self._made]
        return all(isinstance(each, dict) and each.keys() <= {MASK, LOGITS} for each in holders)


def _kept(alive: Callable[[], list[Any]]) -> list[Any]:
    """What is alive though all that nobody can come to is gone. Python's collector takes longer than most looks."""
    if not alive():
        return []
    gc.collect()
    return alive()


@functools.cache
def _keeps_attributes() -> bool:
    """Whether this TensorFlow never lets go of what is put into an attribute of a tensor, as 2.15 does not."""
    held = weakref.ref(_put_into_an_attribute())
    return held() is not None


def _put_into_an_attribute() -> Any:
    held, holder = tf.identity(0.0), tf.identity(1.0)
    setattr(holder, MASK, held)
    return held


def _frames() -> Iterator[Any]:
    """Those of this thread, which Python 3.10 counts among what holds a tensor."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


@contextlib.contextmanager
def observed(callback: Callable[..., None]) -> Iterator[None]:
    """What this thread executes inside, or puts into a graph, is seen. TensorFlow has no public function for it."""
    from tensorflow.python.framework import op_callbacks

    op_callbacks.add_op_callback(callback)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(callback)


def refuse_recorded(tensors: Iterable[Any], refuse: Callable[[str], None]) -> None:
    """Refuse if one of the tensors is made from what a tape records: its gradient would be that of some rows.
    TensorFlow has no public function that says so."""
    from tensorflow.python.eager import record

    for each in tensors:
        if each.dtype.is_floating and record.should_record_backprop([each]):
            refuse(f"uses a tensor of shape {each.shape} that was computed outside from what is trained")
