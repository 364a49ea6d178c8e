"""The look at a call before it is divided: does each row of its results come from the same row of its inputs alone?

The call is made outside the step, eagerly and unseen by tapes: on the whole batch, on the same once more, and on each
worker's rows. All numbers are compared, and gradients between rows of different workers must be nought. What it draws
and the moments it normalises by are those of the whole batch in each. Where a batch is not known yet, it is made up.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import tensorflow as tf

from ..foundation import Inside, TfdpError
from ..framework import functions_run, has_value, recorded_again, unrecorded, unwatched
from ..job import current
from . import examples, replaced
from .containers import leaves_of
from .guard import Code, built_of
from .kept import Kept, as_before
from .look_sights import Again, Part, Whole, pattern
from .muted import muted
from .names import put_back, unchanging
from .observed import Observer, observed, refuse_recorded
from .once import in_a_graph, no_graph
from .own_sight import Pattern
from .rounding import Rounding, size_of
from .rows import divided, is_real, taken
from .sight import Undivided, seen
from .swallowed import answering
from .trial import Trial, tried
from .unspent import unspent
from .ways import Way

Call = Callable[..., Any]
_Watching = Callable[[], contextlib.AbstractContextManager[None]]
_WRAPPED = "Exception encountered"  # what Keras puts before a message
_GRADIENTS = 10.0  # times the rounding of results
_CANCELLED = 3e-6  # of what is computed with; times the limit, some units in the last place
_LEAST = 1e-2  # of the largest gradient: what is smaller has the rounding of that
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


def is_possible(kept: Kept) -> bool:
    """Whether all variables that a call needs have values by now."""
    with tf.init_scope():
        return not tf.executing_eagerly() or all(map(has_value, kept.needed))


class Asked(NamedTuple):
    """A call to be looked at.

    structure: its arguments and options. by_rows: of each leaf of it, whether it is a tensor that has a row for each of
    the batch. owner: the layer, or what else is called. code: that of the script's own in it, if there is any.
    """

    call: Call
    structure: Any
    by_rows: Sequence[bool]
    kept: Kept
    owner: Any
    code: Code | None = None


def look(asked: Asked) -> Found:
    """Look at a call.

    Raises:
        replaced.Met: there is other code of the script's in it.
    """
    asked, eagerly = asked._replace(call=unchanging(asked.call, _undivided)), tf.executing_eagerly()
    found = Found("cannot be tried")
    for unknown in examples.lengths(asked.structure):
        try:
            found, trial = _looked(asked, unknown, eagerly=eagerly)
            return found if trial is None else _with_nested(found, trial)
        except Undivided as answer:
            return Found(str(answer))
        except _Raised as raised:  # whatever the call does not take: then it is not divided
            error = raised.__cause__
            lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith(_WRAPPED)]
            found = Found(f"cannot be tried on some of the rows ({type(error).__name__}: {''.join(lines[:1])[:160]})")
    return found


def way_of(asked: Asked) -> tuple[Way, frozenset[Any]]:
    """The way that code of the script's own takes in such a call that is built into a graph, and by what the layers of
    Keras' own are known that it gives rows.

    Raises:
        Undivided: it cannot be divided.
    """
    call, structure, by_rows, kept, _, code = asked
    assert code is not None
    call = unchanging(call, _undivided)
    with _apart():
        try:
            trial = tried(call, structure, by_rows, eagerly=False, writable=kept.writable)
        finally:
            put_back(kept.before)
    return trial.way, frozenset(trial.nested)


class _Raised(Exception):  # noqa: N818 - what is of interest is its cause
    """What is called has raised an error."""


_looking = Inside()


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """What this thread does inside is a look's.

    GPUs compute in full precision there: in the short one that they take for float32 a row depends on how many there
    are, by a thousandth of its size.
    """
    with _looking.entered(), _full_precision(), muted(), unspent(), unwatched(), tf.init_scope(), unrecorded():
        yield


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    settings = tf.config.experimental
    before = settings.tensor_float_32_execution_enabled()
    settings.enable_tensor_float_32_execution(False)
    try:
        yield
    finally:
        settings.enable_tensor_float_32_execution(before)


def is_looking() -> bool:
    """Whether this thread looks at a call: tapes and gradients are the look's, not the script's."""
    return bool(_looking)


def _with_nested(found: Found, trial: Trial) -> Found:
    """What is found, if each of the layers of Keras' own that the code gives rows gives each row one of its own."""
    for each in trial.nested.values():
        asked = Asked(each.call, each.structure, each.by_rows, each.kept(), each.layer)
        reason = look(asked).reason_beside_rows()
        if reason:
            return Found(f"gives rows to {each.name}, which {reason}")
    return found._replace(pattern=found.pattern._replace(nested=frozenset(trial.nested)))


def _looked(asked: Asked, unknown: int, *, eagerly: bool) -> tuple[Found, Trial | None]:
    call, structure, by_rows, kept, owner, code = asked
    # All of the script's own code; of Keras' own what the whole batch comes to: hooks take as long as all the rest.
    watching = functools.partial(replaced.watched, owner, code and code.codes)
    with _apart(), as_before(kept) as handles, watching() if code else contextlib.nullcontext():
        trial = code and tried(call, structure, by_rows, eagerly=eagerly, writable=kept.writable)
        put_back(kept.before)
        # Keras' own layers do to few rows what they do to many.
        first, *others = examples.of(structure, by_rows, unknown, few=code is None)
        rounding = Rounding()
        one = _Look(call, first, by_rows, kept, rounding, watching=contextlib.nullcontext if code else watching)
        try:
            length = tf.nest.flatten(structure)[by_rows.index(True)].shape[0]
            found = one.found(code and functools.partial(_guarded, code, call, length, eagerly))
            for sample in others:
                another = _Look(call, sample, by_rows, kept, rounding)
                if another.compared() != one.compared():
                    raise Undivided("draws, looks up or gives otherwise for another batch")
        finally:
            handles.extend(one.observer.written)
        outside = one.observer.from_outside()
    refuse_recorded(outside, _undivided)
    if trial is not None and tuple(trial.given) != found.factors:
        raise Undivided("gives results row by row of which that is not known from what it does")
    return found if trial is None else found._replace(way=trial.way), trial


def _guarded(code: Code, call: Call, length: int | None, eagerly: bool, *arguments: Any, **options: Any) -> Any:
    """What the code gives as it is built where it is divided; `length` of the batch, where that is known."""
    built = functools.partial(built_of, call, length=length, eagerly=eagerly)
    with functions_run(eagerly=False):
        return in_a_graph(code.owner, built, arguments, options)


def _undivided(reason: str) -> NoReturn:
    raise Undivided(reason)


class _Run(NamedTuple):
    """What a call has given: results as arrays, and gradients of a number made of them."""

    results: list[Any]
    of_rows: list[Any]
    of_variables: dict[int, Any]


class _Look:
    """One look at a call on one batch."""

    def __init__(
        self,
        call: Call,
        sample: Any,
        by_rows: Sequence[bool],
        kept: Kept,
        rounding: Rounding,
        *,
        watching: _Watching = contextlib.nullcontext,
    ) -> None:
        """`watching` is entered where the whole batch is computed for the first time, and differentiated."""
        self._rounding, self._watching = rounding, watching
        self._call, self._sample, self._by_rows, self._kept = call, sample, by_rows, kept
        self._leaves = tf.nest.flatten(sample)
        self._split = divided(next(int(x.shape[0]) for x, rows in zip(self._leaves, by_rows, strict=True) if rows))
        self._ranks = range(current().topology.size)
        self.observer = Observer({id(each.handle) for each in kept.writable}, self._leaves)

    def found(self, guarded: Call | None) -> Found:
        """What there is to be found, gradients and all.

        guarded: the call as it is built where it is divided, where it has code of the script's own.
        """
        seen_whole = Whole()
        with self._watching():
            results = self._whole(seen_whole)
        found = self._parts(seen_whole, results)
        again = Again(seen_whole, found.pattern)
        with self._watching():
            whole = self._differentiated(again, None, found.factors)
        if not self._are_same(results, whole.results):
            raise Undivided("gives other results for the same rows: it draws, or keeps a state")
        self._compare_gradients(whole, found, seen_whole)
        if guarded is not None:
            self._compare_guarded(guarded, Again(seen_whole, found.pattern), results)
        return found

    def _compare_guarded(self, guarded: Call, again: Again, results: Sequence[Any]) -> None:
        """In a graph, from which Python learns no number of rows, code may take another way."""
        try:
            found = leaves_of(self._called(again, self._leaves, guarded))
        except _Raised as raised:
            raise Undivided(no_graph(raised.__cause__)) from raised
        if not self._are_same(results, found):
            raise Undivided("computes otherwise in a graph, or where it cannot ask for the number of rows")

    def _are_same(self, results: Sequence[Any], others: Sequence[Any]) -> bool:
        return len(others) == len(results) and all(map(self._rounding.allows, results, others))

    def compared(self) -> Found:
        """What results alone tell."""
        whole = Whole()
        return self._parts(whole, leaves_of(self._run(whole, None)))

    def _parts(self, seen_whole: Whole, results: Sequence[Any]) -> Found:
        parts = [Part(seen_whole, self._split, rank) for rank in self._ranks]
        factors: list[int | None] = [None] * len(results)
        for rank, part in enumerate(parts):
            found = leaves_of(self._run(part, rank))
            if len(found) != len(results):
                raise Undivided("gives another number of results for some of the rows")
            factors = [self._matched(*each, rank) for each in zip(results, found, factors, strict=True)]
        return Found("", pattern(seen_whole, parts, self._rounding.allows), tuple(each or 0 for each in factors))

    def _run(self, sight: Any, rank: int | None) -> Any:
        return self._called(sight, self._cut(rank))

    def _called(self, sight: Any, leaves: Sequence[Any], call: Call | None = None) -> Any:
        put_back(self._kept.before)
        arguments, options = tf.nest.pack_sequence_as(self._sample, leaves)
        rows = [x for x, by_rows in zip(leaves, self._by_rows, strict=True) if by_rows]
        try:
            with answering(), seen(sight, rows):
                return (call or self._call)(*arguments, **options)
        except Exception as error:
            raise _Raised from error

    def _cut(self, rank: int | None) -> list[Any]:
        if rank is None:
            return list(self._leaves)
        cut = list(zip(self._leaves, self._by_rows, strict=True))
        found = {id(x): examples.rows(x, self._split, rank) for x, rows in cut if rows}
        return [found[id(x)] if rows else x for x, rows in cut]

    def _whole(self, whole: Whole) -> list[Any]:
        """The results of the whole batch; Undivided where the call does more than to give results."""
        with observed(self.observer.seen):
            results = leaves_of(self._run(whole, None))
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

    def _differentiated(self, sight: Any, rank: int | None, factors: Sequence[int]) -> _Run:
        """A run with the gradients of a number in which each result counts differently."""
        leaves = self._cut(rank)
        sources = [x for x, by_rows in zip(leaves, self._by_rows, strict=True) if by_rows and x.dtype.is_floating]
        with recorded_again(), tf.GradientTape(persistent=True) as tape:
            tape.watch(sources)
            sight.watch = tape.watch
            outputs = tf.nest.flatten(self._called(sight, leaves))
            target = self._weighed(outputs, factors, rank)
        sources += sight.found
        variables = tape.watched_variables()
        if target is None:
            return _Run(leaves_of(outputs), [None] * len(sources), {})
        try:
            with answering(), seen(sight):  # else gradients of variables would be averaged
                gradients = tape.gradient(target, [*sources, *variables])
        except Exception as error:  # from a gradient that a function of the script defines
            raise _Raised from error
        dense = [None if each is None else np.asarray(tf.convert_to_tensor(each)) for each in gradients]
        of_variables = {id(v.handle): g for v, g in zip(variables, dense[len(sources) :], strict=True)}
        return _Run(leaves_of(outputs), dense[: len(sources)], of_variables)

    def _weighed(self, outputs: Sequence[Any], factors: Sequence[int], rank: int | None) -> Any:
        """Shape []; of some rows N times as much, as in the gradient of a divided call. None without results."""
        terms = []
        for each, factor in zip(outputs, factors, strict=True):
            if not factor or not each.dtype.is_floating:
                continue
            rows = self._split.times(factor)
            size = max(1, int(each.shape[1:].num_elements() or 0))
            weights = tf.reshape(tf.cos(tf.range(rows.whole * size, dtype=tf.float64)), [rows.whole, *each.shape[1:]])
            if rank is not None:
                real = tf.cast(is_real(rows, rank), tf.float64) * len(self._ranks)
                weights = taken(weights, rows, rank) * tf.reshape(real, [-1] + [1] * (each.shape.rank - 1))
            terms.append(tf.reduce_sum(tf.cast(each, tf.float64) * weights))
        return tf.add_n(terms) if terms else None

    def _compare_gradients(self, whole: _Run, found: Found, seen_whole: Whole) -> None:
        """Those of the parts must be rows of those of the whole, N times; and on average those of variables."""
        sums: dict[int, Any] = {}
        # Where a gradient is nought, as that of a bias in a softmax, all of it is rounding of others.
        least = _LEAST * max((size_of(each) for each in (*whole.of_rows, *whole.of_variables.values())), default=0.0)
        # And a saturated layer's is the difference of numbers of the size of what it computes with.
        least = max(least, _CANCELLED * max((size_of(each) for each in self._computed_with()), default=0.0))
        for rank in self._ranks:
            run = self._differentiated(Part(seen_whole, self._split, rank, found.pattern), rank, found.factors)
            if len(run.of_rows) != len(whole.of_rows):
                raise Undivided("looks up other rows for some of the rows")
            for part, of_all in zip(run.of_rows, whole.of_rows, strict=True):
                self._compare_rows(part, of_all, rank, least)
            for key, gradient in run.of_variables.items():
                if gradient is not None:
                    sums[key] = sums.get(key, 0) + gradient / len(self._ranks)
        for key, gradient in whole.of_variables.items():
            mine = np.zeros_like(sums.get(key)) if gradient is None else gradient
            if not self._rounding.allows(mine, sums.get(key, np.zeros_like(mine)), _GRADIENTS, least):
                raise Undivided("has a gradient of a variable that is not the sum over the rows")

    def _computed_with(self) -> list[Any]:
        floats = [x for x in self._leaves if isinstance(x, tf.Tensor) and x.dtype.is_floating]
        return [*floats, *(each for each in self._kept.needed if each.dtype.is_floating)]

    def _compare_rows(self, part: Any, whole: Any, rank: int, least: float) -> None:
        if part is None or whole is None:
            if part is not whole:
                raise Undivided("has a gradient for some of the rows only")
            return
        rows = self._split.times(len(part) // self._split.own)
        mine = np.asarray(taken(tf.convert_to_tensor(whole), rows, rank)) * len(self._ranks)
        mine[~np.asarray(is_real(rows, rank))] = 0
        if not self._rounding.allows(mine, part, _GRADIENTS, least * len(self._ranks)):
            raise Undivided("mixes rows: the gradient for some of them differs without the others")

    def _matched(self, whole: Any, part: Any, factor: int | None, rank: int) -> int:
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
        if whole.shape != part.shape or not self._rounding.allows(whole, part):
            raise Undivided("mixes rows: the result for some of them differs without the others")
        if factor not in (None, number):
            raise Undivided("has results that are rows for some workers only")
        return number
