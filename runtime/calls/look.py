"""The look at a call before it is divided: does each row of its results come from the same row of its inputs alone?

The call is made outside the step, eagerly and unseen by tapes: on the whole batch, on the same once more, and on each
worker's rows. All numbers are compared, and gradients between rows of different workers must be nought. What it draws
and the moments it normalises by are those of the whole batch in each. Where a batch is not known yet, it is made up.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ..framework import has_value, recorded_again, unrecorded
from ..job import current
from . import examples
from .look_sights import Again, Part, Whole, pattern
from .observed import Observer, observed, refuse_recorded
from .own_sight import Pattern
from .rows import divided, taken
from .sight import Undivided, seen

Call = Callable[..., Any]
_WRAPPED = "Exception encountered"  # what Keras puts before a message


class Found(NamedTuple):
    """What a look has found: why the call cannot be divided, or "" and how it can.

    factors: for each leaf of the results how many rows it has for one of the batch; 0 where it has none of them.
    """

    reason: str
    pattern: Pattern = Pattern({}, {})
    factors: tuple[int, ...] = ()


class Kept(NamedTuple):
    """What a look may change, and puts back: variables, objects' attributes; and which variables a call may write.

    needed: variables that must have values for it. Those that a `tf.function` makes get them after its first trace.
    """

    needed: Sequence[Any]
    variables: Sequence[Any]
    objects: Sequence[Any]
    writable: Sequence[Any]


def is_possible(kept: Kept) -> bool:
    """Whether all variables that a call needs have values by now."""
    with tf.init_scope():
        return not tf.executing_eagerly() or all(map(has_value, kept.needed))


def look(call: Call, structure: Any, by_rows: Sequence[bool], kept: Kept) -> Found:
    """Look at `call(*arguments, **options)`.

    Args:
        structure: the arguments and options of a call.
        by_rows: of each leaf of it, whether it is a tensor that has a row for each of the batch.
    """
    found = Found("cannot be tried")
    for unknown in examples.lengths(structure):
        try:
            return _looked(call, structure, by_rows, kept, unknown)
        except Undivided as answer:
            return Found(str(answer))
        except Exception as error:  # whatever the call does not take: then it is not divided
            lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith(_WRAPPED)]
            found = Found(f"cannot be tried on some of the rows ({type(error).__name__}: {''.join(lines[:1])[:160]})")
    return found


def _looked(call: Call, structure: Any, by_rows: Sequence[bool], kept: Kept, unknown: int) -> Found:
    outside: list[Any] = []
    with tf.init_scope(), unrecorded(), _as_before(kept) as written:
        for sample in examples.of(structure, by_rows, unknown):
            found = _Look(call, sample, by_rows, kept, outside, written).found()
    refuse_recorded(outside)
    return found


class _Look:
    """One look at a call on one batch."""

    def __init__(  # noqa: PLR0917
        self, call: Call, sample: Any, by_rows: Sequence[bool], kept: Kept, outside: list[Any], written: list[Any]
    ) -> None:
        self._call, self._sample, self._by_rows = call, sample, by_rows
        self._kept, self._outside, self._written = kept, outside, written
        leaves = tf.nest.flatten(sample)
        self._split = divided(next(int(x.shape[0]) for x, rows in zip(leaves, by_rows, strict=True) if rows))

    def found(self) -> Found:
        whole = Whole()
        results = self._whole(whole)
        parts = [Part(whole, self._split, rank) for rank in range(current().topology.size)]
        factors: list[int | None] = [None] * len(results)
        for rank, part in enumerate(parts):
            found = _arrays(self._run(part, rank))
            if len(found) != len(results):
                raise Undivided("gives another number of results for some of the rows")
            factors = [self._compared(*each, rank) for each in zip(results, found, factors, strict=True)]
        kind = pattern(whole, parts, close)
        self._again(Again(whole, kind), results)
        return Found("", kind, tuple(each or 0 for each in factors))

    def _run(self, sight: Any, rank: int | None) -> Any:
        leaves = tf.nest.flatten(self._sample)
        if rank is not None:
            cut = zip(leaves, self._by_rows, strict=True)
            leaves = [examples.rows(x, self._split, rank) if rows else x for x, rows in cut]
        arguments, options = tf.nest.pack_sequence_as(self._sample, leaves)
        with seen(sight):
            return self._call(*arguments, **options)

    def _whole(self, whole: Whole) -> list[Any]:
        """The results of the whole batch; Undivided where the call does more than to give results."""
        observer = Observer({id(each.handle) for each in self._kept.writable})
        try:
            with observed(observer):
                results = _arrays(self._run(whole, None))
        finally:
            self._written += observer.written
        if observer.reasons:
            raise Undivided(observer.reasons[0])
        held = {id(each) for each in (*whole.held(), *tf.nest.flatten(self._sample))}
        left = [each for each in observer.left() if id(each) not in held]
        if left:
            raise Undivided(f"leaves a tensor of shape {left[0].shape} in an attribute, a list or the like")
        self._outside += observer.from_outside
        return results

    def _again(self, again: Again, results: Sequence[Any]) -> None:
        """The same once more, and the gradients between rows."""
        leaves = zip(tf.nest.flatten(self._sample), self._by_rows, strict=True)
        sources = [x for x, by_rows in leaves if by_rows and x.dtype.is_floating]
        with recorded_again(), tf.GradientTape(persistent=True) as tape:
            tape.watch(sources)
            again.watch = tape.watch
            outputs = self._run(again, None)
            found = _arrays(outputs)
            if len(found) != len(results) or any(not close(*each) for each in zip(results, found, strict=True)):
                raise Undivided("gives other results for the same rows: it draws, or keeps a state")
            targets = self._targets(tf.nest.flatten(outputs))
        sources += again.found
        for target, first, last in targets:
            for source, gradient in zip(sources, tape.gradient(target, sources), strict=True):
                self._refuse_between(source, gradient, first, last)

    def _targets(self, outputs: Sequence[Any]) -> list[tuple[Any, int, int]]:
        """A number that depends on all results for the first worker's rows, and one for the last's; and which rows."""
        size, found = current().topology.size, []
        for rank in (0, size - 1):
            first, last = rank * self._split.own, min((rank + 1) * self._split.own, self._split.whole)
            terms = []
            for each in outputs:
                if isinstance(each, tf.Tensor) and each.dtype.is_floating and each.shape.rank:
                    factor, rest = divmod(int(each.shape[0]), self._split.whole)
                    if not rest:
                        flat = tf.reshape(tf.cast(each[first * factor : last * factor], tf.float64), [-1])
                        # Unlike for all: those of a softmax add up to one whatever they are.
                        terms.append(tf.reduce_sum(flat * tf.cos(tf.range(tf.cast(tf.size(flat), tf.float64)))))
            if terms and first < last:
                found.append((tf.add_n(terms), first, last))
        return found

    def _refuse_between(self, source: Any, gradient: Any, first: int, last: int) -> None:
        if gradient is None or not source.shape.rank:
            return
        factor, rest = divmod(int(source.shape[0]), self._split.whole)
        if rest:
            return
        dense = np.asarray(tf.convert_to_tensor(gradient))
        others = np.concatenate([dense[: first * factor], dense[last * factor :]])
        if (others != 0).any():
            raise Undivided("mixes rows: the result for one depends on others")

    def _compared(self, whole: Any, part: Any, factor: int | None, rank: int) -> int:
        """How many rows the result has for one of the batch; 0 where it is the same for all parts."""
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
            whole = np.asarray(taken(tf.convert_to_tensor(whole), expected, rank))
        if whole.shape != part.shape or not close(whole, part):
            raise Undivided("mixes rows: the result for some of them differs without the others")
        if factor not in (None, number):
            raise Undivided("has results that are rows for some workers only")
        return number


def _arrays(results: Any) -> list[Any]:
    """Leaves: tensors as arrays."""
    found = []
    for each in tf.nest.flatten(results):
        if isinstance(each, tf.__internal__.CompositeTensor):
            raise Undivided(f"gives a {type(each).__name__}")
        found.append(np.asarray(each) if isinstance(each, tf.Tensor) else each)
    return found


def close(one: Any, other: Any) -> bool:
    """Whether two arrays are equal up to rounding; or two other things are."""
    if not hasattr(one, "dtype"):
        return bool(one is other or one == other)
    dtype = tf.as_dtype(one.dtype)
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        return False
    if not (dtype.is_floating or dtype.is_complex):
        return bool(np.array_equal(one, other))
    limit = 1e-9 if dtype in (tf.float64, tf.complex128) else 1e-4 if dtype in (tf.float32, tf.complex64) else 3e-2
    one, other = (each.astype(np.complex128 if dtype.is_complex else np.float64) for each in (one, other))
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return False
    size = np.abs(one[finite]).max(initial=0.0)
    return bool((np.abs(one[finite] - other[finite]) <= limit * max(size, 1e-30)).all())


@contextlib.contextmanager
def _as_before(kept: Kept) -> Iterator[list[Any]]:
    """Generators, written variables and attributes are put back; handles of what was written go into the list it gives.

    TensorFlow's eager generator has no public state.
    """
    from tensorflow.python.eager import context

    drawn = getattr(context.context(), "_rng", None)  # there is none before a seed is set
    states = random.getstate(), np.random.get_state(), drawn.getstate() if drawn is not None else None
    values = {id(each.handle): (each, tf.identity(tf.convert_to_tensor(each))) for each in kept.variables}
    attributes = [(each, dict(vars(each))) for each in kept.objects]
    eagerly = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    written: list[Any] = []
    try:
        yield written
    finally:
        tf.config.run_functions_eagerly(eagerly)
        for each in kept.writable:
            written.append(each.handle)
        for handle in {id(each) for each in written}:
            if handle in values:
                values[handle][0].assign(values[handle][1])
        for each, before in attributes:
            vars(each).clear()
            vars(each).update(before)
        random.setstate(states[0])
        np.random.set_state(states[1])
        if drawn is not None:
            drawn.setstate(states[2])
