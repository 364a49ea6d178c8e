"""What a layer sees of the batch while it is called: all of it, or a worker's rows.

`now()` is None outside divided calls and the look. Inside, what draws, normalises over the batch or looks rows of a
table up asks it how.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from .ways import Way

Tensor = Any


class Undivided(BaseException):
    """Why a call cannot be divided."""


class Strayed(BaseException):
    """A call does what its look has not seen, and has done nothing yet that cannot be taken back.

    way: the one that Python has taken; None where the call has not ended.
    """

    def __init__(self, way: Way | None = None) -> None:
        self.way = way


class Draw(NamedTuple):
    """A random operation inside a call: its name, the shape it is to have, what makes it of any shape, and what it is
    given besides, such as bounds and seeds.

    `imitate` gives numbers of the kind, and changes no generator's state. has_state: whether it goes by one that
    TensorFlow keeps.
    """

    kind: str
    shape: Any
    make: Callable[[Any], Tensor]
    imitate: Callable[[Any], Tensor]
    has_state: bool
    given: Any = ()


class Moments(NamedTuple):
    """Of some examples, feature by feature: how many (or the sum of their weights), mean, sum of squared deviations."""

    count: Tensor
    mean: Tensor
    deviations: Tensor


class Sight(Protocol):
    """What is asked inside a call."""

    def drawn(self, draw: Draw) -> Tensor:
        """What this call gets of a draw."""

    def normalised(self, values: Tensor, weights: Tensor | None, axes: list[int], *, live: bool) -> Moments:
        """The moments over `axes`, 0 among them, of all examples of the batch, with the axes kept; `weights` broadcast
        with the values.

        live: whether the mean by which deviations are measured has a gradient. The first derivative is the same; of
        second ones each of the operations that one process takes has its own.
        """

    def looked_up(self, table: Any, rows: Tensor, look_up: Callable[[Tensor], Tensor]) -> Tensor:
        """What `look_up(rows)` is to this call: a lookup in a trained table, an Embedding layer or a variable."""

    def whole_length(self, rows: int | None) -> int | None:
        """How many rows the batch has of something of which this call has so many; None where that is not known."""

    def key(self) -> Any:
        """By what traces of functions inside can be used again; None where they cannot."""

    def compiled(self, stateless: bool) -> None:
        """It calls a `tf.function`, which may have been traced where nothing is assigned or drawn."""

    def executes(self, kind: str, inputs: Sequence[Any]) -> None:
        """Code of the script's own has an operation of this kind in a graph, outside of Keras' own layers."""

    def meets(self, nested: Any) -> None:
        """Inside code of the script's own a layer of Keras' own is given rows: a `guard.Nested`."""

    def whole(self) -> int | None:
        """The batch's length; None where that is not known."""

    def is_in_earnest(self) -> bool:
        """Whether what is called counts, and is no look."""

    def for_good(self, *, strictly: bool) -> AbstractContextManager[None]:
        """What is refused inside ends the job where it is in earnest, if `strictly`."""

    def spends(self) -> None:
        """Numbers are drawn that will not be drawn again."""

    def gives(self, factors: Sequence[int], way: Way, *, parts_ways: bool) -> None:
        """How many rows each leaf of the results of such code has for one of the batch; 0 where it has none.

        way: the one that Python has taken. parts_ways: whether one of them follows from another, and no tape will know
        of it.
        """

    def refuse(self, what: str) -> None:
        """The call does what keeps it from being divided, such as adding a loss.

        Raises:
            Undivided: in a look. TfdpError: in a divided call, which did not do it then.
        """


class _Thread(threading.local):
    sight: Sight | None = None
    rows: Sequence[Any] = ()
    whole = False  # nothing inside is divided
    lookup = False
    validation = False


_thread = _Thread()


def now() -> Sight | None:
    """The sight of the call that this thread is in."""
    return _thread.sight


def is_whole() -> bool:
    """Whether this thread is inside something of which nothing is to be divided."""
    return _thread.whole


def is_validation() -> bool:
    """Whether this thread is in a step of the validation that belongs to `fit`, which all workers run."""
    return _thread.validation


@contextlib.contextmanager
def validation(is_one: bool = True) -> Iterator[None]:
    """What is called inside is such a step, or is none."""
    before, _thread.validation = _thread.validation, is_one
    try:
        yield
    finally:
        _thread.validation = before


def rows() -> Sequence[Any]:
    """What has been given to the call that this thread is in, and has rows of the batch."""
    return _thread.rows


@contextlib.contextmanager
def seen(sight: Sight | None, given: Sequence[Any] = ()) -> Iterator[None]:
    """What is called inside has this sight; `given` are the tensors given to it that have rows."""
    before, _thread.sight, _thread.rows = (_thread.sight, _thread.rows), sight, given
    try:
        yield
    finally:
        _thread.sight, _thread.rows = before


def is_lookup() -> bool:
    """Whether this thread is in a lookup for which `Sight.looked_up` was asked."""
    return _thread.lookup


@contextlib.contextmanager
def lookup() -> Iterator[None]:
    """What is looked up inside is such a lookup."""
    _thread.lookup = True
    try:
        yield
    finally:
        _thread.lookup = False


@contextlib.contextmanager
def undivided() -> Iterator[None]:
    """Nothing that is called inside is divided."""
    before, _thread.whole = _thread.whole, True
    try:
        yield
    finally:
        _thread.whole = before
