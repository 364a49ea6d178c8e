"""The sight of a divided call: a worker's own rows."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from ..foundation import TfdpError
from ..job import normalises_locally
from .rows import Split, every, is_real, length, own, shared, stacked, taken, total
from .sight import Draw, Moments, Strayed
from .ways import Way

Tensor = Any


class Pattern(NamedTuple):
    """What a look has found a call to do: whether draws, by operation and rank, and lookups, by table, go by rows; and
    the layers that code of the script's own gives rows."""

    draws: Mapping[tuple[str, int | None], bool]
    lookups: Mapping[int, bool]
    nested: frozenset[Any] = frozenset()


class Expected(NamedTuple):
    """What a look has found of code that is built before it is run: its `factors`, and its way."""

    factors: tuple[int, ...]
    way: Way


class Own:
    """What a divided call sees."""

    def __init__(self, split: Split, pattern: Pattern, name: str, expected: Expected | None = None) -> None:
        """`name` is that of the call, for messages.

        expected: of a call that can be taken back until it is run.
        """
        self._split, self._pattern, self._name, self._expected = split, pattern, name, expected
        self._is_final = expected is None  # whether it can be taken back no more
        self.given: Sequence[int] | None = None  # factors of the results, where they are known
        self.parts_ways = False

    def drawn(self, draw: Draw) -> Tensor:
        """This worker's rows of the whole draw, or the draw where it is not by rows."""
        key = draw.kind, rank_of(draw.shape)
        if key not in self._pattern.draws:
            self.refuse(f"draws by {draw.kind}")
        if not self._pattern.draws[key]:
            return draw.make(draw.shape)
        shape = tf.get_static_value(draw.shape) if tf.is_tensor(draw.shape) else draw.shape
        sizes = tf.unstack(draw.shape, num=key[1]) if shape is None else [int(each) for each in shape]
        split = self._split.times(self._factor(sizes[0]))
        return taken(draw.make(tf.stack([split.whole, *sizes[1:]])), split)

    def _factor(self, size: Any) -> Any:
        """How many of so many rows stand for one of the batch."""
        if isinstance(size, int) and isinstance(self._split.own, int):
            if size % self._split.own:
                self.refuse(f"makes {size} rows of {self._split.own}")
            return size // self._split.own
        return size // tf.maximum(self._split.own, 1)  # a batch may have no rows

    def normalised(self, values: Tensor, weights: Tensor | None, axes: list[int], *, live: bool) -> Moments:
        """In one exchange: those of each worker's rows, combined by the formula of Chan, Golub and LeVeque (1979).

        Their gradients are those of sums over all rows, whose values are known by then. With `batch_norm="local"` it is
        this worker's rows alone, of which each counts, padding too.
        """
        if normalises_locally():
            return moments(values, weights, axes)
        real = self._without_padding(values, weights)
        mine = moments(tf.stop_gradient(values), real, axes)
        packed = tf.stack([tf.broadcast_to(mine.count, tf.shape(mine.mean)), mine.mean, mine.deviations])
        found = combined(*tf.unstack(stacked(packed, self._name), axis=1))
        if weights is None:  # without a row in the batch there is no mean
            found = found._replace(mean=tf.where(found.count > 0, found.mean, tf.constant(math.nan, values.dtype)))
        count, of = found.count, values if real is None else values * real

        def deviations(mean: Tensor) -> Tensor:
            squared = tf.math.squared_difference(values, mean)
            return tf.reduce_sum(squared if real is None else squared * real, axes, keepdims=True)

        if live:
            mean = found.mean + _nought(total(tf.reduce_sum(of, axes, keepdims=True), self._name)) / count
            return Moments(count, mean, found.deviations + _nought(total(deviations(mean), self._name)))
        both = total(tf.stack([tf.reduce_sum(of, axes, keepdims=True), deviations(found.mean)]), self._name)
        first, second = tf.unstack(_nought(both))
        return Moments(count, found.mean + tf.math.divide_no_nan(first, count), found.deviations + second)

    def _without_padding(self, values: Tensor, weights: Tensor | None) -> Tensor | None:
        if self._split.is_even:
            return weights
        split = self._split.times(self._factor(length(values)))
        real = tf.reshape(tf.cast(is_real(split), values.dtype), [-1] + [1] * (values.shape.rank - 1))
        return real if weights is None else weights * real

    def looked_up(self, table: Any, rows: Tensor, look_up: Callable[[Tensor], Tensor]) -> Tensor:
        """The lookup of the whole batch, so that slices of a table's gradient are those of one process."""
        if id(table) not in self._pattern.lookups:
            self.refuse(f"looks rows up by {table.name}")
        if not self._pattern.lookups[id(table)]:
            return shared(look_up(rows), self._name)
        split = self._split.times(self._factor(length(rows)))
        return own(look_up(every(rows, split, self._name)), split, self._name)

    def whole_length(self, rows: int | None) -> int | None:
        """As many as there are workers, without what is computed twice."""
        whole, mine = self._split
        if rows is None or not (isinstance(whole, int) and isinstance(mine, int)) or not mine or rows % mine:
            return rows
        return rows // mine * whole

    def key(self) -> Any:
        """Lengths that are tensors belong to one graph."""
        known = all(isinstance(each, int) for each in self._split)
        return (*self._split, id(self._pattern), self._name) if known else None

    def compiled(self, stateless: bool) -> None:
        """Functions run eagerly in a look only."""

    def executes(self, kind: str, inputs: Sequence[Any]) -> None:
        """What it does to rows is seen by a guard."""

    def meets(self, nested: Any) -> None:
        """It must have been looked at."""
        if nested.key not in self._pattern.nested:
            self.refuse(f"gives rows to {nested.name}")

    def whole(self) -> int | None:
        """As one process knows it."""
        return self._split.whole if isinstance(self._split.whole, int) else None

    def is_in_earnest(self) -> bool:
        """It is no look."""
        return True

    @contextlib.contextmanager
    def for_good(self, *, strictly: bool) -> Iterator[None]:
        """It cannot be called whole instead, as it has been compiled for one process by now."""
        before = self._is_final
        self._is_final |= strictly
        yield
        self._is_final = before  # not after an error, which ends the job

    def spends(self) -> None:
        """What is drawn eagerly is not drawn again."""
        self._is_final = True

    def gives(self, factors: Sequence[int], way: Way, *, parts_ways: bool) -> None:
        """For `division`."""
        self.given, self.parts_ways = factors, parts_ways
        if self._expected is None or self._expected == (tuple(factors), way):
            return
        if self._is_final:
            self.refuse("takes another way through its Python")
        raise Strayed(way if way != self._expected.way else None)

    def refuse(self, what: str) -> None:
        """It cannot be divided: a call that can be taken back is; else what it has begun has been done."""
        if not self._is_final:
            raise Strayed
        raise TfdpError(
            f"{self._name} {what}, which it did not do when it was looked at before its first call: it has been "
            "divided, and cannot be. Call it outside of the gradient tape, or let it do so from the start"
        )


def _nought(value: Tensor) -> Tensor:
    """0, with the gradient of the value."""
    return value - tf.stop_gradient(value)


def rank_of(shape: Any) -> int | None:
    """How many dimensions a shape has, which is a list or a tensor; None where that is not known."""
    if tf.is_tensor(shape):
        size = shape.shape[0] if shape.shape.rank == 1 else None
        return None if size is None else int(size)
    return len(tf.TensorShape(shape)) if isinstance(shape, tf.TensorShape) else len(shape)


def moments(values: Tensor, weights: Tensor | None, axes: list[int]) -> Moments:
    """The moments of some values, by feature, with the axes kept."""
    if weights is None:
        size = tf.reduce_prod(tf.gather(tf.shape(values), axes))
        mean = tf.reduce_mean(values, axes, keepdims=True)
        deviations = tf.reduce_sum(tf.math.squared_difference(values, mean), axes, keepdims=True)
        return Moments(tf.cast(size, values.dtype), mean, deviations)
    weights = tf.broadcast_to(weights, tf.shape(values))
    count = tf.reduce_sum(weights, axes, keepdims=True)
    mean = tf.math.divide_no_nan(tf.reduce_sum(values * weights, axes, keepdims=True), count)
    deviations = tf.reduce_sum(tf.math.squared_difference(values, mean) * weights, axes, keepdims=True)
    return Moments(count, mean, deviations)


def combined(counts: Tensor, means: Tensor, deviations: Tensor) -> Moments:
    """The moments of several parts, of which axis 0 of each argument counts."""
    count = tf.reduce_sum(counts, 0)
    mean = tf.math.divide_no_nan(tf.reduce_sum(counts * means, 0), count)
    apart = tf.reduce_sum(counts * tf.math.squared_difference(means, mean[None]), 0)
    return Moments(count, mean, tf.reduce_sum(deviations, 0) + apart)
