"""Random numbers that the items of a sequence draw: on each rank others."""

import hashlib
import os
import pickle
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np


class _Generator(NamedTuple):
    """How a generator's state is read and set, and the state that belongs to a seed (0 to 2**32 - 1)."""

    get: Callable[[], Any]
    put: Callable[[Any], None]
    seeded: Callable[[int], Any]


class ItemDraws:
    """Python's and NumPy's global generators, and those that a source keeps as attributes, while it reads an item.

    The ranks read different items with generators seeded alike: an item that draws the examples it is made of would be
    the same on all of them. So items draw from states of each rank's own. What is drawn at other times, such as an
    order at the end of an epoch, stays common, however many numbers the items have drawn.

    The first item is read with the common states: an order may be drawn only when it is first needed. Items that draw
    nothing change nothing.
    """

    def __init__(self, source: object, rank: int) -> None:
        self._source, self._rank = source, rank
        self._begin()

    def _begin(self) -> None:
        self._process, self._lock = os.getpid(), threading.RLock()
        self._generators = [_PYTHON, _NUMPY, *_kept(self._source)]
        self._own: list[Any] | None = None

    @contextmanager
    def own(self) -> Iterator[None]:
        """Read one item. Threads take turns: the global generators are one for all of them."""
        if os.getpid() != self._process:  # one that Keras has forked: its lock may be held by nobody
            self._begin()
        with self._lock:
            common = [g.get() for g in self._generators]
            if self._own is not None:
                self._put(self._own)
            try:
                yield
            finally:
                if self._own is not None:
                    self._own = [g.get() for g in self._generators]
                    self._put(common)
                else:
                    self._own = self._following(common, ("own", self._rank))
                    if _seed([g.get() for g in self._generators]) != _seed(common):
                        self._put(self._following(common, ("common",)))

    def _put(self, states: list[Any]) -> None:
        for generator, state in zip(self._generators, states, strict=True):
            generator.put(state)

    def _following(self, states: list[Any], *parts: object) -> list[Any]:
        return [g.seeded(_seed(s, *parts)) for g, s in zip(self._generators, states, strict=True)]


def _seed(*parts: object) -> int:
    return int.from_bytes(hashlib.blake2b(pickle.dumps(parts), digest_size=4).digest(), "little")


def _python(seed: int) -> Any:
    return random.Random(seed).getstate()


def _numpy(seed: int) -> Any:
    return np.random.RandomState(seed).get_state()


_PYTHON = _Generator(random.getstate, random.setstate, _python)
_NUMPY = _Generator(np.random.get_state, np.random.set_state, _numpy)


def _kept(source: object) -> Iterator[_Generator]:
    for value in vars(source).values():
        if isinstance(value, random.Random):
            yield _Generator(value.getstate, value.setstate, _python)
        elif isinstance(value, np.random.RandomState) and isinstance(value.get_state(), tuple):
            yield _Generator(value.get_state, value.set_state, _numpy)
        elif isinstance(value, np.random.Generator):
            yield _of_generator(value.bit_generator)


def _of_generator(bits: Any) -> _Generator:
    def put(state: Any) -> None:
        bits.state = state

    def seeded(seed: int) -> Any:
        return type(bits)(seed).state

    return _Generator(lambda: bits.state, put, seeded)
