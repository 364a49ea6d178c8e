"""The look at a call before it is divided: does each row of its results come from the same row of its inputs alone?

The call is made outside the step, eagerly and unseen by tapes, on some rows of the batch and on this worker's of these,
and all numbers are compared. What it draws and the moments it normalises by are those of all of them. Where a batch is
not known yet, it is made up. Code of the script's own is built into a graph besides, for its operations to be seen.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import tensorflow as tf

from ..foundation import Inside
from ..framework import functions_run, has_value, unrecorded, unwatched
from . import alike, examples, general, replaced
from .batch_look import BatchLook, Call, Found, RaisedError
from .guard import Code, built_of
from .kept import Kept, as_before
from .muted import muted
from .names import put_back, unchanging
from .observed import refuse_recorded
from .once import in_a_graph, said_by
from .own_sight import Pattern
from .rounding import Rounding
from .sight import Undivided
from .trial import Trial, tried
from .unspent import unspent
from .ways import Way


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


# What looks have found of layers of Keras' own that do no more than to compute, by `alike.kind_of`.
_known: dict[Any, Found] = {}


def look(asked: Asked) -> Found:
    """Look at a call, where none like it has been looked at.

    Raises:
        replaced.Met: there is other code of the script's in it.
    """
    kind = alike.kind_of(asked.owner, asked.structure, asked.by_rows) if asked.code is None else None
    if kind is None:
        return _look(asked)
    if kind not in _known:
        found = _look(asked)
        if found.reason or found.pattern != Pattern({}, {}):
            return found
        _known[kind] = found
    return _known[kind]


def _look(asked: Asked) -> Found:
    asked, eagerly = asked._replace(call=unchanging(asked.call, _undivided)), tf.executing_eagerly()
    found = Found("cannot be tried")
    for unknown in examples.lengths(asked.structure):
        try:
            found, trial = _looked(asked, unknown, eagerly=eagerly)
            return found if trial is None else _with_nested(found, trial)
        except Undivided as answer:
            return Found(str(answer))
        except RaisedError as raised:  # whatever the call does not take: then it is not divided
            found = Found(f"cannot be tried on some of the rows ({said_by(raised.__cause__)})")
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
    """Keras' own layers keep rows apart or mix them whatever the numbers are, and each operation of other code is known
    to keep them apart; so results of few rows tell all, and each worker sees to its own."""
    call, structure, by_rows, kept, owner, code = asked
    watching = functools.partial(replaced.watched, owner, code and code.codes)
    trial, rounding = None, Rounding()
    with _apart(), as_before(kept) as handles:
        if code is not None:
            with watching():
                trial = tried(call, structure, by_rows, eagerly=eagerly, writable=kept.writable)
            put_back(kept.before)
        one, unlike, apart = (
            BatchLook(call, each, by_rows, kept, rounding) for each in examples.of(structure, by_rows, unknown)
        )
        try:
            found = one.found(watching if code is None else contextlib.nullcontext)
            if code is not None:
                length = tf.nest.flatten(structure)[by_rows.index(True)].shape[0]
                one.compare_guarded(functools.partial(_guarded, code, call, length, eagerly))
            elif one.gives_other_tensors(found):
                raise Undivided("gives a tensor that has no rows")
            if _compared(unlike, apart) != found:
                raise Undivided("draws, looks up or gives otherwise for another batch")
        finally:
            handles.extend(one.observer.written)
        outside = one.observer.from_outside()
    refuse_recorded(outside, _undivided)
    if trial is None:
        return found, None
    if tuple(trial.given) != found.factors:
        raise Undivided("gives results row by row of which that is not known from what it does")
    return found._replace(way=trial.way), trial


def _compared(unlike: BatchLook, apart: BatchLook) -> Found:
    """What a look at numbers in general position finds; at the others where the call does not take these, as where
    they stand for places in a table."""
    try:
        with general.in_general_position():
            return apart.compared()
    except RaisedError:
        return unlike.compared()


def _guarded(code: Code, call: Call, length: int | None, eagerly: bool, *arguments: Any, **options: Any) -> Any:
    """What the code gives as it is built where it is divided; `length` of the batch, where that is known."""
    built = functools.partial(built_of, call, length=length, eagerly=eagerly)
    with functions_run(eagerly=False):
        return in_a_graph(code.owner, built, arguments, options)


def _undivided(reason: str) -> NoReturn:
    raise Undivided(reason)
