"""Iterators of datasets: one that shuffles draws for each of them a new order, which goes on from the last one's.

A `fit` that goes on later makes as many beforehand, and reads none of them: the seeds are drawn when one is made.
Other numbers that a stage draws begin with each iterator anew, as TensorFlow makes its operations anew for it.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from ..framework import hidden_states, keeps_state, python_in

_GONE: weakref.ref[Any] = weakref.ref(set())
_ORDINAL, _STATE = "_tfdp_ordinal", "_tfdp_state"
_datasets: list[weakref.ref[Any]] = []  # all, in the order in which they were made
_watching: list[Watch] = []
_orders: list[Order] = []
_reads: list[Reads] = []
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
        self.unknown = self.unknown or _state_of(dataset).why
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


class Order:
    """How many iterators each stage has had that goes on from one to the next, from now on and for good; and in a
    process that goes on, those that it was to have had."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}  # by the number of the stage
        self._states: dict[int, _State] = {}  # by the number of the iterator, where it has one
        self._stages: list[tuple[int, ...]] = []  # of each iterator
        self._owed: dict[int, int] = {}
        _orders.append(self)

    def note(self, dataset: Any) -> None:
        """An iterator is made of this."""
        stages = _going_on(dataset)
        if (found := _state_of(dataset)).why:
            self._states[len(self._stages)] = found
        self._stages.append(tuple(getattr(each, _ORDINAL) for each in stages))
        for stage in stages:
            number = getattr(stage, _ORDINAL)
            for _ in range(self._owed.pop(number, 0)):
                iter(stage)
            self.counts[number] = self.counts.get(number, 0) + 1

    @property
    def iterators(self) -> int:
        """How many were made."""
        return len(self._stages)

    def stages_of(self, iterators: Iterable[int]) -> dict[int, tuple[int, ...]]:
        """The stages of each that go on from one iterator to the next, by number."""
        return {number: self._stages[number] for number in iterators}

    def owe(self, counts: Mapping[int, int]) -> None:
        """Before a stage has its next iterator, it is to have had so many."""
        self._owed = {number: count - self.counts.get(number, 0) for number, count in counts.items()}

    def settle(self) -> None:
        """Stages that are made from now on are others, whatever their numbers."""
        self._owed = {}

    def unknown(self, read_on: Collection[int]) -> str:
        """What iterators keep, or draw, that no other could go on from; empty for nothing.

        read_on: the numbers of those that another process reads until they are where these are.
        """
        for number, found in self._states.items():
            is_alone = number in read_on and all(self.counts[each] == 1 for each in self._stages[number])
            if not (found.by_reading and is_alone):
                return found.why
        return ""

    def living(self) -> dict[int, int]:
        """The counts of the stages that are still there."""
        return {number: count for number, count in self.counts.items() if _datasets[number]() is not None}


class Reads:
    """How many elements were taken of each iterator of a dataset, from now on and for good; and in a process that goes
    on, those that were to have been taken of it."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[Any]] = []  # in their order
        self._taken: list[int | None] = []  # None: nobody knows how many
        self._restored: set[int] = set()
        self._owed: dict[int, int] = {}
        _reads.append(self)

    def made(self, iterator: Any) -> None:
        """It is one more."""
        setattr(iterator, _ORDINAL, len(self._made))
        self._made.append(weakref.ref(iterator))
        self._taken.append(0)
        self._pay(len(self._made) - 1)

    def took(self, iterator: Any) -> None:
        """An element was taken of it, or its end was seen; by a graph nobody knows how often."""
        number = getattr(iterator, _ORDINAL, None)
        if number is not None and (taken := self._taken[number]) is not None:
            self._taken[number] = taken + 1 if tf.executing_eagerly() else None

    def restored(self, iterator: Any) -> None:
        """It is where it was when a checkpoint was saved."""
        if (number := getattr(iterator, _ORDINAL, None)) is not None:
            self._taken[number] = None
            self._restored.add(number)

    def given_away(self, iterator: Any) -> None:
        """A compiled function may take of it."""
        if (number := getattr(iterator, _ORDINAL, None)) is not None:
            self._taken[number] = None

    def taken(self, iterator: Any) -> tuple[int, int] | None:
        """Which one it is, and how many were; None where that is not known."""
        number = getattr(iterator, _ORDINAL, None)
        taken = None if number is None else self._taken[number]
        return None if number is None or taken is None else (number, taken)

    def owe(self, counts: Mapping[int, int]) -> None:
        """So many were to have been taken of each, by its number, whether it is there or made later; one that was in a
        checkpoint has been put there by that."""
        for number in self._restored & counts.keys():
            self._taken[number] = counts[number]
        self._owed = dict(counts)
        for number in range(len(self._made)):
            self._pay(number)

    def settle(self) -> None:
        """Iterators that are made from now on are others, whatever their numbers."""
        self._owed = {}

    def _pay(self, number: int) -> None:
        owed, iterator, taken = self._owed.pop(number, 0), self._made[number](), self._taken[number]
        if iterator is not None and taken is not None:
            for _ in range(owed - taken):
                next(iterator, None)


def _going_on(dataset: Any) -> list[Any]:
    """The stages of a dataset that go on from one iterator to the next: those that shuffle, and caches."""
    own = [dataset] if hasattr(dataset, "_seed") or type(dataset).__name__.strip("_") == "CacheDataset" else []
    return [*own, *(each for source in dataset._inputs() for each in _going_on(source))]


class _State(NamedTuple):
    """Why none could go on from an iterator; empty for nothing. by_reading: but by reading as much, if it is alone."""

    why: str = ""
    by_reading: bool = False


def _state_of(dataset: Any) -> _State:
    """What a dataset does that goes on from one iterator to the next and that none could go on from."""
    if _STATE not in vars(dataset):
        setattr(dataset, _STATE, _looked_at(dataset, ""))
    found: _State = getattr(dataset, _STATE)
    return found


def _looked_at(dataset: Any, under: str) -> _State:
    """The same, without a note of it.

    under: a later stage that may not make one iterator of this when one of its own is made.
    """
    name = type(dataset).__name__.strip("_")
    if hasattr(dataset, "_seed") and (under or name != "ShuffleDataset"):
        under = under or name
        return _State(f"its data are drawn by {name}, and {under} goes over them in its own time", by_reading=True)
    for function in dataset._functions():
        graph = function.function.graph
        if names := python_in(graph):
            return _State(f"its data come from Python ({', '.join(names)})")
        if names := hidden_states(graph, draws=False):
            return _State(f"its data come from {', '.join(names)}, which keeps a state")
        if under == "CacheDataset" and keeps_state(graph):
            return _State("its data are drawn, and kept by `cache` as they were drawn first", by_reading=True)
        if any(each.dtype == tf.variant for each in function.function.captured_inputs):
            return _State(f"a function of {name} makes iterators of another dataset")
    under = under or ("" if name in _AT_ONCE else name)
    found = (_looked_at(each, under) for each in dataset._inputs())
    return next((each for each in found if each.why), _State())


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
        for watch in _watching:
            watch.note(self)
        for order in _orders:
            order.note(self)
        found = iterate(self)
        _watch_kind(found.__class__)
        for reads in _reads:
            reads.made(found)
        return found

    cls.__init__, cls.__iter__ = __init__, __iter__


@functools.cache
def _watch_kind(cls: Any) -> None:
    """From now on it is known what is taken of iterators of this class, and how checkpoints move them. Neither it nor
    the latter has a public name."""
    for name in ("__next__", "get_next", "get_next_as_optional"):
        setattr(cls, name, _taking(getattr(cls, name)))
    restore = cls._restore_from_tensors

    @functools.wraps(restore)
    def restored(self: Any, *arguments: Any, **options: Any) -> Any:
        for each in _reads:
            each.restored(self)
        return restore(self, *arguments, **options)

    cls._restore_from_tensors = restored


def _taking(original: Any) -> Any:
    @functools.wraps(original)
    def take(self: Any) -> Any:
        for each in _reads:
            each.took(self)
        return original(self)

    return take
