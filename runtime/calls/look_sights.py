"""The sights of a look: the whole batch, whose draws and moments are remembered, and parts, which get them back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from .own_sight import Pattern, combined, moments, rank_of
from .rows import Split, is_real, taken
from .sight import Draw, Moments, Undivided
from .ways import Way

Tensor = Any
_K = TypeVar("_K")


class LookSight:
    """What all of them answer alike."""

    def compiled(self, stateless: bool) -> None:
        """The whole's is seen."""

    def whole_length(self, rows: int | None) -> int | None:
        """As many: what follows from it is put back."""
        return rows

    def key(self) -> None:
        """Functions run eagerly in a look."""

    def executes(self, kind: str, inputs: Sequence[Any]) -> None:
        """It is seen where the code is tried in a graph."""

    def meets(self, nested: Any) -> None:
        """It is seen where the code is tried in a graph."""

    def whole(self) -> None:
        """It makes no difference."""

    def is_in_earnest(self) -> bool:
        """It is a look."""
        return False

    def for_good(self, *, strictly: bool) -> AbstractContextManager[None]:  # noqa: ARG002
        """It is a look."""
        return contextlib.nullcontext()

    def spends(self) -> None:
        """They are imitated."""

    def gives(self, factors: Sequence[int], way: Way, *, parts_ways: bool) -> None:
        """The look compares."""

    def refuse(self, what: str) -> None:
        """The answer of the look."""
        raise Undivided(what)


class Whole(LookSight):
    """Sees the whole batch, and remembers what it has asked."""

    def __init__(self) -> None:
        self.draws: list[tuple[tuple[str, int | None], Tensor]] = []
        self.moments: list[Moments] = []
        self.lookups: list[tuple[int, int]] = []
        self.stateless = False

    def drawn(self, draw: Draw) -> Tensor:
        """What would be drawn; no generator's state is changed."""
        found = draw.imitate(draw.shape)
        self.draws.append(((draw.kind, rank_of(draw.shape)), found))
        return found

    def normalised(self, values: Tensor, weights: Tensor | None, axes: list[int], *, live: bool) -> Moments:  # noqa: ARG002
        """The moments of all rows."""
        self.moments.append(moments(values, weights, axes))
        return self.moments[-1]

    def looked_up(self, table: Any, rows: Tensor, look_up: Callable[[Tensor], Tensor]) -> Tensor:
        """The lookup."""
        self.lookups.append((id(table), int(rows.shape[0]) if rows.shape.rank else 0))
        return look_up(rows)

    def compiled(self, stateless: bool) -> None:
        """Remembered."""
        self.stateless |= stateless

    def held(self) -> list[Tensor]:
        """The tensors that are remembered."""
        return [*(found for _, found in self.draws), *(each for moment in self.moments for each in moment)]


class Part(LookSight):
    """Sees some rows of the batch that a `Whole` has seen."""

    def __init__(self, seen: Whole, split: Split, rank: int, kind: Pattern | None = None) -> None:
        """`kind` is given where it is known; then what is looked up for each row is kept, and watched."""
        self._split, self._rank, self._kind = split, rank, kind
        self.found: list[Tensor] = []
        self.watch: Callable[[Tensor], None] = lambda _: None
        self._draws, self._lookups = iter(seen.draws), iter(seen.lookups)
        self._moments = iter(seen.moments)
        self.own_moments: list[Moments] = []
        self.draws: dict[tuple[str, int | None], bool] = {}
        self.lookups: dict[int, bool] = {}

    def drawn(self, draw: Draw) -> Tensor:
        """Its rows of what was drawn for the whole batch."""
        key, whole = next(self._draws, (("", 0), None))
        size = [int(each) for each in np.asarray(draw.shape)]
        if whole is None or key != (draw.kind, rank_of(draw.shape)):
            raise Undivided("draws in another order for some of the rows")
        by_rows = self._by_rows(whole.shape[0], size[0]) if size and whole.shape[1:] == size[1:] else None
        if by_rows is None and whole.shape != size:
            raise Undivided(f"draws by {draw.kind}, and not row by row")
        self._remember(self.draws, key, by_rows is not None, f"draws by {draw.kind} for each row and for all of them")
        return whole if by_rows is None else taken(whole, by_rows, self._rank)

    def normalised(self, values: Tensor, weights: Tensor | None, axes: list[int], *, live: bool) -> Moments:  # noqa: ARG002
        """Those of the whole batch; its own are remembered."""
        whole = next(self._moments, None)
        factor, rest = divmod(int(values.shape[0]), self._split.own)
        if whole is None or rest:
            raise Undivided("normalises other values for some of the rows")
        real = tf.cast(is_real(self._split.times(factor), self._rank), values.dtype)
        real = tf.reshape(real, [-1] + [1] * (values.shape.rank - 1))
        self.own_moments.append(moments(values, real if weights is None else weights * real, axes))
        return whole

    def looked_up(self, table: Any, rows: Tensor, look_up: Callable[[Tensor], Tensor]) -> Tensor:
        """The lookup, and whether it is by rows."""
        key, size = next(self._lookups, (0, 0))
        if key != id(table) or not rows.shape.rank:
            raise Undivided("looks up other rows of a table for some of the rows")
        by_rows = self._by_rows(size, int(rows.shape[0]))
        if by_rows is None and int(rows.shape[0]) != size:
            raise Undivided("looks up other rows of a table for some of the rows")
        self._remember(
            self.lookups, key, by_rows is not None, f"{table.name} looks up for each row and for all of them"
        )
        found = tf.identity(look_up(rows))
        if self._kind is not None and by_rows is not None and found.dtype.is_floating:
            self.watch(found)
            self.found.append(found)
        return found

    def _by_rows(self, whole: int, part: int) -> Split | None:
        """How `part` rows are a worker's of `whole` ones; None if both are of the same length."""
        if whole == part:
            return None
        factor, rest = divmod(part, self._split.own)
        found = self._split.times(factor)
        return None if rest or found.whole != whole else found

    def _remember(self, known: dict[Any, bool], key: Any, by_rows: bool, otherwise: str) -> None:
        if known.setdefault(key, by_rows) != by_rows:
            raise Undivided(otherwise)


class Again(LookSight):
    """Sees the whole batch once more."""

    def __init__(self, seen: Whole, kind: Pattern) -> None:
        self._draws, self._moments, self._kind = iter(seen.draws), iter(seen.moments), kind
        self.found: list[Tensor] = []  # what was looked up for each row
        self.watch: Callable[[Tensor], None] = lambda _: None

    def drawn(self, draw: Draw) -> Tensor:
        """What was drawn before."""
        return next(self._draws, (None, draw.imitate(draw.shape)))[1]

    def normalised(self, values: Tensor, weights: Tensor | None, axes: list[int], *, live: bool) -> Moments:  # noqa: ARG002
        """Those of before, so that they lead from no row to another."""
        return next(self._moments, None) or moments(values, weights, axes)

    def looked_up(self, table: Any, rows: Tensor, look_up: Callable[[Tensor], Tensor]) -> Tensor:
        """The lookup."""
        found = tf.identity(look_up(rows))
        if self._kind.lookups.get(id(table)) and found.dtype.is_floating:
            self.watch(found)
            self.found.append(found)
        return found


def pattern(whole: Whole, parts: Sequence[Part], close: Callable[[Any, Any], bool]) -> Pattern:
    """What all parts have found alike.

    Raises:
        Undivided: they have not; or the moments of the parts are not those of the whole.
    """
    draws: dict[tuple[str, int | None], bool] = {}
    lookups: dict[int, bool] = {}
    for part in parts:
        if len(part.own_moments) != len(whole.moments) or next(part._draws, None) or next(part._lookups, None):
            raise Undivided("does less for some of the rows")
        _join(draws, part.draws)
        _join(lookups, part.lookups)
    for index, moment in enumerate(whole.moments):
        own = [part.own_moments[index] for part in parts]
        counts, means, deviations = (tf.stack([tf.broadcast_to(m[i], m.mean.shape) for m in own]) for i in range(3))
        found = combined(counts, means, deviations)
        if not all(close(tf.broadcast_to(one, other.shape), other) for one, other in zip(moment, found, strict=True)):
            raise Undivided("normalises over other values than all of the batch")
    return Pattern(draws, lookups)


def _join(known: dict[_K, bool], more: dict[_K, bool]) -> None:
    if any(known.get(key, value) != value for key, value in more.items()):
        raise Undivided("draws or looks up otherwise for some of the rows")
    known.update(more)
