"""The sights of a look: the whole batch, whose draws and moments are remembered, and parts, which get them back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from .own_sight import Pattern, moments, rank_of
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
        self.moments: list[tuple[Moments, Any, Any]] = []  # of values, with weights, as arrays
        self.lookups: list[tuple[int, int]] = []
        self.stateless = False

    def drawn(self, draw: Draw) -> Tensor:
        """What would be drawn; no generator's state is changed."""
        found = draw.imitate(draw.shape)
        self.draws.append(((draw.kind, rank_of(draw.shape)), found))
        return found

    def normalised(self, values: Tensor, weights: Tensor | None, axes: list[int], *, live: bool) -> Moments:  # noqa: ARG002
        """The moments of all rows."""
        found = moments(values, weights, axes)
        self.moments.append((found, np.asarray(values), None if weights is None else np.asarray(weights)))
        return found

    def looked_up(self, table: Any, rows: Tensor, look_up: Callable[[Tensor], Tensor]) -> Tensor:
        """The lookup."""
        self.lookups.append((id(table), int(rows.shape[0]) if rows.shape.rank else 0))
        return look_up(rows)

    def compiled(self, stateless: bool) -> None:
        """Remembered."""
        self.stateless |= stateless

    def held(self) -> list[Tensor]:
        """The tensors that are remembered."""
        return [*(found for _, found in self.draws), *(each for found, _, _ in self.moments for each in found)]


class Part(LookSight):
    """Sees some rows of the batch that a `Whole` has seen."""

    def __init__(self, seen: Whole, split: Split, rank: int, close: Callable[[Any, Any], bool]) -> None:
        """close: whether two arrays are the same but for rounding."""
        self._split, self._rank, self._close = split, rank, close
        self._draws, self._lookups = iter(seen.draws), iter(seen.lookups)
        self._moments = iter(seen.moments)
        self._drawn: dict[tuple[str, int | None], bool] = {}
        self._found: dict[int, bool] = {}

    def drawn(self, draw: Draw) -> Tensor:
        """Its rows of what was drawn for the whole batch."""
        key, whole = next(self._draws, (("", 0), None))
        size = [int(each) for each in np.asarray(draw.shape)]
        if whole is None or key != (draw.kind, rank_of(draw.shape)):
            raise Undivided("draws in another order for some of the rows")
        by_rows = self._by_rows(whole.shape[0], size[0]) if size and whole.shape[1:] == size[1:] else None
        if by_rows is None and whole.shape != size:
            raise Undivided(f"draws by {draw.kind}, and not row by row")
        self._remember(self._drawn, key, by_rows is not None, f"draws by {draw.kind} for each row and for all of them")
        return whole if by_rows is None else taken(whole, by_rows, self._rank)

    def normalised(self, values: Tensor, weights: Tensor | None, axes: list[int], *, live: bool) -> Moments:  # noqa: ARG002
        """Those of the whole batch, whose rows these must be."""
        found, of_all, weights_of_all = next(self._moments, (None, None, None))
        if found is None or not (self._are_rows(values, of_all) and self._are_rows(weights, weights_of_all)):
            raise Undivided("normalises over other values than all of the batch")
        return found

    def _are_rows(self, part: Tensor | None, whole: Any) -> bool:
        if part is None or whole is None:
            return part is whole
        factor, rest = divmod(int(part.shape[0]), self._split.own)
        split = self._split.times(factor)
        if rest or (split.whole, *part.shape[1:]) != whole.shape:
            return False
        real = np.asarray(is_real(split, self._rank))
        return self._close(np.asarray(taken(tf.constant(whole), split, self._rank))[real], np.asarray(part)[real])

    def looked_up(self, table: Any, rows: Tensor, look_up: Callable[[Tensor], Tensor]) -> Tensor:
        """The lookup, and whether it is by rows."""
        key, size = next(self._lookups, (0, 0))
        if key != id(table) or not rows.shape.rank:
            raise Undivided("looks up other rows of a table for some of the rows")
        by_rows = self._by_rows(size, int(rows.shape[0]))
        if by_rows is None and int(rows.shape[0]) != size:
            raise Undivided("looks up other rows of a table for some of the rows")
        self._remember(self._found, key, by_rows is not None, f"{table.name} looks up for each row and for all of them")
        return look_up(rows)

    def pattern(self) -> Pattern:
        """What it has asked for, row by row or not."""
        if any(next(each, None) for each in (self._draws, self._lookups, self._moments)):
            raise Undivided("does less for some of the rows")
        return Pattern(self._drawn, self._found)

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

    def __init__(self, seen: Whole) -> None:
        self._draws, self._moments = iter(seen.draws), iter(seen.moments)

    def drawn(self, draw: Draw) -> Tensor:
        """What was drawn before."""
        return next(self._draws, (None, draw.imitate(draw.shape)))[1]

    def normalised(self, values: Tensor, weights: Tensor | None, axes: list[int], *, live: bool) -> Moments:  # noqa: ARG002
        """Those of before."""
        known = next(self._moments, None)
        return moments(values, weights, axes) if known is None else known[0]

    def looked_up(self, table: Any, rows: Tensor, look_up: Callable[[Tensor], Tensor]) -> Tensor:  # noqa: ARG002
        """The lookup."""
        return look_up(rows)
