"""Which batch of the sharded data a Python loop has taken last: the ranks train on one global batch only if it is the
same everywhere. And whether such a loop has come to its end although no step was ever taken.

Keras' `fit` and loops inside a `tf.function` take their batches in a graph: nothing is seen of them here.
"""

import atexit
import threading
import weakref
from typing import Any, NamedTuple

import tensorflow as tf

from ..foundation import Ordinals, call_site, uncaught
from ..framework import made_of, transparent
from ..gradients import exchanges
from ..job import current, end_badly, is_initialized


class Taken(NamedTuple):
    """A batch: the data's number, the number of the batch since the loop began (0: none yet), and the data's place."""

    source: int
    batch: int
    site: str

    def __str__(self) -> str:
        return f"batch {self.batch} of the data sharded at {self.site}" if self.batch else "no batch of a Python loop"


class _State:
    """What the loops of the main thread have done. Batches that other threads read ahead belong to no step yet."""

    def __init__(self) -> None:
        self.last = Taken(0, 0, "")
        self.ended = ""  # where the data were sharded that a loop has read to the end
        self.watches = False


_state = _State()
_numbers = Ordinals()
_sources: weakref.WeakKeyDictionary[Any, Taken] = weakref.WeakKeyDictionary()


def last_taken() -> Taken:
    """The batch of sharded data that a Python loop of the main thread has taken last."""
    return _state.last


def watched_dataset(dataset: Any) -> Any:
    """The sharded dataset itself; loops over it, and over what is made of it, are counted from now on."""
    _sources[dataset] = new_source(call_site())
    return dataset


def new_source(site: str) -> Taken:
    """A sharded source before its first batch, known by the same on all ranks: they make the same ones in one order."""
    if not _state.watches:
        _state.watches = True
        _watch_iterators()
        atexit.register(_last_look)
    return Taken(_numbers.next("sources"), 0, site)


def take(taken: Taken) -> None:
    """A batch has been read. In another thread that is ahead of its step, which takes it later or never."""
    if threading.current_thread() is threading.main_thread():
        _state.last = taken


def end(site: str) -> None:
    """A loop over the data sharded there has come to its end."""
    if threading.current_thread() is threading.main_thread():
        _state.ended = site


def _watch_iterators() -> None:
    with tf.init_scope():
        cls: Any = type(iter(tf.data.Dataset.range(0)))
    begin, advance = tf.data.Dataset.__iter__, cls.__next__

    def __iter__(self: Any) -> Any:  # noqa: N807 - as the method that it replaces
        iterator = begin(self)
        made = made_of(self) if tf.executing_eagerly() else ()
        source = next((_sources[each] for each in made if each in _sources), None)
        if source is not None:
            iterator._tfdp_taken = source
        return iterator

    def __next__(self: Any) -> Any:  # noqa: N807
        taken = vars(self).get("_tfdp_taken")
        if taken is None:
            return advance(self)
        try:
            element = advance(self)
        except StopIteration:
            end(taken.site)
            raise
        self._tfdp_taken = taken._replace(batch=taken.batch + 1)
        take(self._tfdp_taken)
        return element

    tf.data.Dataset.__iter__, cls.__next__ = transparent(__iter__), transparent(__next__)


def _last_look() -> None:
    """At the end of a process that nothing has failed."""
    failed = uncaught() is not None
    if _state.ended and not exchanges() and is_initialized() and current().topology.size > 1 and not failed:
        end_badly(
            f"the data sharded at {_state.ended} were read to the end, and no training step was ever taken: no "
            "gradient was exchanged. Look for a condition that no batch of one rank meets, such as its size"
        )
