"""One look at a call on one batch: what it gives for the whole of it, and for this worker's rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ..foundation import TfdpError
from ..job import current
from . import examples
from .containers import leaves_of
from .kept import Kept
from .look_sights import Again, Part, Whole
from .names import put_back
from .observed import Observer, observed
from .once import no_graph
from .own_sight import Pattern
from .rounding import Rounding
from .rows import divided, taken
from .sight import Undivided, seen
from .swallowed import answering
from .ways import Way

Call = Callable[..., Any]
_LEFT = (
    "leaves a tensor in a list, a global or the like when it is called, from where a look at it cannot take it back. "
    "Give the tensor back as a result, or keep it in an attribute of the layer"
)


class LeftBehindError(TfdpError):
    """A look has left a tensor where the script may come to it."""


class Found(NamedTuple):
    """What a look has found: why the call cannot be divided, or "" and how it can.

    factors: for each leaf of the results how many rows it has for one of the batch; 0 where it has none of them.
    by_rows: of each leaf of what it is given, whether it has a row for each of the batch. way: that through code of the
    script's own.
    """

    reason: str
    pattern: Pattern = Pattern({}, {})
    factors: tuple[int, ...] = ()
    by_rows: tuple[bool, ...] = ()
    way: Way = Way({}, ())

    @property
    def is_alone(self) -> bool:
        """Whether it calls no layer of Keras' own."""
        return not self.pattern.nested

    def reason_beside_rows(self) -> str:
        """Why it does not give a row for each, or nothing of them; "" where it does."""
        return self.reason or ("" if set(self.factors) <= {0, 1} else "gives several rows for each of the batch")


class RaisedError(Exception):
    """What is called has raised an error: the cause of this one."""


class BatchLook:
    """One look at a call on one batch."""

    def __init__(self, call: Call, sample: Any, by_rows: Sequence[bool], kept: Kept, rounding: Rounding) -> None:
        self._seen, self._rounding, self._rank = Whole(), rounding, current().topology.rank
        self._call, self._sample, self._by_rows, self._kept = call, sample, by_rows, kept
        self._leaves = tf.nest.flatten(sample)
        self._split = divided(next(int(x.shape[0]) for x, rows in zip(self._leaves, by_rows, strict=True) if rows))
        self.observer = Observer({id(each.handle) for each in kept.writable}, self._leaves)

    def found(self, watching: Callable[[], contextlib.AbstractContextManager[None]]) -> Found:
        """What results tell, and what the call does besides; `watching` while the whole batch is computed."""
        with watching():
            self._results = self._whole()
        return self._part(self._seen, self._results)

    def gives_other_tensors(self, found: Found) -> bool:
        """Whether it gives tensors that have no rows: they may be made of all rows nevertheless."""
        pairs = zip(self._results, found.factors, strict=True)
        return any(not factor for each, factor in pairs if isinstance(each, np.ndarray))

    def compare_guarded(self, guarded: Call) -> None:
        """In a graph, from which Python learns no number of rows, code may take another way.

        guarded: the call as it is built where it is divided.
        """
        try:
            found = leaves_of(self._called(Again(self._seen), self._leaves, guarded))
        except RaisedError as raised:
            raise Undivided(no_graph(raised.__cause__)) from raised
        if not self._are_same(self._results, found):
            raise Undivided("computes otherwise in a graph, or where it cannot ask for the number of rows")

    def _are_same(self, results: Sequence[Any], others: Sequence[Any]) -> bool:
        return len(others) == len(results) and all(map(self._rounding.allows, results, others))

    def compared(self) -> Found:
        """What results alone tell."""
        seen_whole = Whole()
        return self._part(seen_whole, leaves_of(self._called(seen_whole, self._leaves)))

    def _part(self, seen_whole: Whole, results: Sequence[Any]) -> Found:
        part = Part(seen_whole, self._split, self._rank, self._rounding.allows)
        found = leaves_of(self._called(part, self._cut()))
        if len(found) != len(results):
            raise Undivided("gives another number of results for some of the rows")
        factors = tuple(map(self._matched, results, found))
        return Found("", part.pattern(), factors)

    def _called(self, sight: Any, leaves: Sequence[Any], call: Call | None = None) -> Any:
        put_back(self._kept.before)
        arguments, options = tf.nest.pack_sequence_as(self._sample, leaves)
        rows = [x for x, by_rows in zip(leaves, self._by_rows, strict=True) if by_rows]
        try:
            with answering(), seen(sight, rows):
                return (call or self._call)(*arguments, **options)
        except Exception as error:
            raise RaisedError from error

    def _cut(self) -> list[Any]:
        cut = list(zip(self._leaves, self._by_rows, strict=True))
        found = {id(x): examples.rows(x, self._split, self._rank) for x, rows in cut if rows}
        return [found[id(x)] if rows else x for x, rows in cut]

    def _whole(self) -> list[Any]:
        """The results of the whole batch; Undivided where the call does more than to give results."""
        whole = self._seen
        with observed(self.observer.seen):
            results = leaves_of(self._called(whole, self._leaves))
        self._rounding.inside = self.observer.rounding
        if self.observer.reasons:
            raise Undivided(self.observer.reasons[0])
        if whole.stateless and (whole.draws or whole.moments or self.observer.written):
            raise Undivided("draws, or keeps a state, in a tf.function that Keras has traced without")
        held = *whole.held(), *self._leaves
        if self.observer.left(held):
            put_back(self._kept.before)
            if self.observer.left(held):
                raise LeftBehindError(_LEFT)
            raise Undivided("leaves a tensor in an attribute, a list or the like")
        return results

    def _matched(self, whole: Any, part: Any) -> int:
        """How many rows the result has for one of the batch; 0 where it is the same for the part."""
        if not isinstance(whole, np.ndarray) or not isinstance(part, np.ndarray):
            if type(whole) is type(part) and (whole is part or whole == part):
                return 0
            raise Undivided("gives results of another kind for some of the rows")
        number = 0
        if part.shape[:1] != whole.shape[:1]:
            number, rest = divmod(part.shape[0], self._split.own)
            expected = self._split.times(number)
            if rest or whole.shape[0] != expected.whole or not number:
                raise Undivided("has results that are no rows")
            whole = np.asarray(taken(tf.convert_to_tensor(whole), expected, self._rank))
        if whole.shape != part.shape or not self._rounding.allows(whole, part):
            raise Undivided("mixes rows: the result for some of them differs without the others")
        return number
