"""Iterators of datasets: one that shuffles draws for each of them a new order, which goes on from the last one's.

A `fit` that goes on later makes as many beforehand, and reads none of them: the seeds are drawn when one is made.
Other numbers that a stage draws begin with each iterator anew, as TensorFlow makes its operations anew for it.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from ..framework import hidden_states, keeps_state, python_in

_GONE: weakref.ref[Any] = weakref.ref(set())
_ORDINAL = "_tfdp_ordinal"
_datasets: list[weakref.ref[Any]] = []  # all, in the order in which they were made
_watching: list[Watch] = []
# Stages whose iterator makes one of what they are made from, when it is made itself, and no other.
_AT_ONCE = frozenset(
    f"{name}Dataset"
    for name in (
        *("Batch", "Filter", "Map", "Options", "PaddedBatch", "ParallelBatch", "ParallelMap", "Prefetch", "Shuffle"),
        *("Skip", "Take", "Zip"),
    )
)


class Watch:
    """The iterators that are made from now on, until `close`."""

    def __init__(self) -> None:
        self.made: list[tuple[int, ...]] = []  # for each the datasets behind it that are older than this, by number
        self.unknown = ""  # what an iterator keeps, or draws, that no other could go on from
        self.of_first = 0  # iterators that were made of the dataset of the first of them
        self._first: Any = None
        self._seen: dict[int, Any] = {}
        self._known = len(_datasets)
        _watching.append(self)

    def close(self) -> None:
        """No more of them."""
        _watching.remove(self)

    def begins(self) -> None:
        """What was made until now was made by a process that goes on, too; what is there now is old."""
        self.forget()
        self._known = len(_datasets)

    def forget(self) -> None:
        """None has been made."""
        self.made.clear()
        self._first, self.of_first = None, 0

    def note(self, dataset: Any) -> None:
        """An iterator is made of this."""
        if id(dataset) not in self._seen:
            self._seen[id(dataset)] = dataset
            self.unknown = self.unknown or _state_of(dataset)
        self._first = dataset if self._first is None else self._first
        self.of_first += dataset is self._first
        self.made.append(tuple(self._old(dataset)))

    def _old(self, dataset: Any) -> Iterable[int]:
        number = getattr(dataset, _ORDINAL, None)
        if number is not None and number < self._known:
            return [number]
        if hasattr(dataset, "_seed"):
            self.unknown = f"{type(dataset).__name__.strip('_')} is made anew in `fit`, and draws"
        return [number for each in dataset._inputs() for number in self._old(each)]


def _state_of(dataset: Any, under: str = "") -> str:
    """What a dataset does that goes on from one iterator to the next and that none could go on from; empty for nothing.

    under: a later stage that may not make one iterator of this when one of its own is made.
    """
    name = type(dataset).__name__.strip("_")
    if hasattr(dataset, "_seed") and (under or name != "ShuffleDataset"):
        under = under or name
        return f"its data are drawn by {name}, and {under} goes over them in its own time"
    for function in dataset._functions():
        graph = function.function.graph
        if names := python_in(graph):
            return f"its data come from Python ({', '.join(names)})"
        if names := hidden_states(graph, draws=False):
            return f"its data come from {', '.join(names)}, which keeps a state"
        if under == "CacheDataset" and keeps_state(graph):
            return "its data are drawn, and kept by `cache` as they were drawn first"
        if any(each.dtype == tf.variant for each in function.function.captured_inputs):
            return f"a function of {name} makes iterators of another dataset"
    under = under or ("" if name in _AT_ONCE else name)
    found = (_state_of(each, under) for each in dataset._inputs())
    return next(filter(None, found), "")


def datasets_made() -> int:
    """How many datasets this process has made."""
    return len(_datasets)


def count_datasets(count: int) -> None:
    """Where fewer were made than so many, as by a process that has left something out, the others are gone."""
    _datasets.extend([_GONE] * max(0, count - len(_datasets)))


def make_unread(made: Sequence[Sequence[int]]) -> None:
    """Make the iterators that a process has made which this one goes on from."""
    for numbers in made:
        for number in numbers:
            dataset = _datasets[number]()
            if dataset is not None:
                iter(dataset)


def watch_iterators() -> None:
    """From now on it is known which datasets are made, and which iterators of them."""
    cls = tf.data.Dataset
    initialise, iterate = cls.__init__, cls.__iter__

    @functools.wraps(initialise)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:  # noqa: N807
        initialise(self, *arguments, **options)
        setattr(self, _ORDINAL, len(_datasets))
        _datasets.append(weakref.ref(self))

    @functools.wraps(iterate)
    def __iter__(self: Any) -> Any:  # noqa: N807
        for each in _watching:
            each.note(self)
        return iterate(self)

    cls.__init__, cls.__iter__ = __init__, __iter__
