"""What looks have found, by what a call is given, and by what code of the script's own reads in Python and comes to."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import tensorflow as tf

from ..foundation import Min, TfdpError, call_site, say_once
from ..framework import unrecorded
from ..job import current, mix
from ..transports import Label
from . import replaced
from .batch_look import Found, LeftBehindError
from .callee import Callee, Given
from .examples import exactly
from .kept import Kept
from .kept_with import kept_with
from .look import Asked, is_possible, look, way_of
from .plain import Verdict, verdict
from .sight import Undivided
from .stateless import has_generator
from .ways import Way

_LOOKS = 16  # at most by the configuration of a layer with code of the script's own, which may count steps
_WAYS = 16  # at most through such code, which may choose another each time
_STATES = 8  # of what such code reads in Python: a flag has two, and a counter has a new one each time
_CHANGES = "reads numbers in Python that change from call to call"
_MANY = "takes another way through its Python in each of many calls"
_EAGERLY = "runs eagerly, and calls layers: these are divided; in a tf.function all of it would be"
_TABLES = "runs eagerly, and looks up rows of variables: in a tf.function it would be divided"
_LONG = 10.0  # seconds of looks
_WAITS = (
    "each kind of call is looked at once before it is divided over the workers, which makes the first steps slow here; "
    "later ones are not"
)
_spent: list[float] = []


class _Looks(NamedTuple):
    """What looks have found of one kind of calls, the last one last; and in graphs for exactly these arguments."""

    founds: list[Found]
    exactly: dict[Any, Found]


def found_of(callee: Callee, given: Given) -> Found | None:
    """What a look at such a call has found, the same on all workers; None where it cannot be taken yet.

    Of code that runs eagerly it is what the last one has found: it may take another way.
    """
    callee, (founds, known) = _of_kind(callee, given)
    if callee.code is None or tf.executing_eagerly():
        return founds[-1] if founds else _first(callee, given, founds)
    # What code only computes, of what is read to be the same, it computes on the same way.
    key = exactly(given.leaves)
    found = known.get(key) if key else None
    if found is None:
        found = _in_a_graph(callee, given, founds)
        if key and found is not None and not found.reason:
            known[key] = found
    return found


def _first(callee: Callee, given: Given, founds: list[Found]) -> Found | None:
    kept = callee.kept()
    if not is_possible(kept):
        return None
    founds.append(_seen(callee, given, kept))
    return founds[-1]


def _in_a_graph(callee: Callee, given: Given, founds: list[Found]) -> Found | None:
    """By the way that Python takes."""
    if not founds:
        return _first(callee, given, founds)
    if founds[-1].reason:
        return founds[-1]
    try:
        way, nested = way_of(_asked(callee, given, callee.kept(), founds[-1].by_rows))
    except Undivided as answer:
        return Found(str(answer))
    return found_again(callee, given, way, nested)


def found_again(callee: Callee, given: Given, way: Way | None, nested: frozenset[Any] = frozenset()) -> Found:
    """The same where Python is seen to take this way now, and to give rows to these layers of Keras'; the way is None
    where that is not known."""
    callee, (founds, _) = _of_kind(callee, given)
    index = next((i for i, each in enumerate(founds) if each.way == way and nested <= each.pattern.nested), None)
    if index is not None:
        founds.append(founds.pop(index))
    else:
        founds.append(_seen(callee, given, callee.kept()) if len(founds) < _WAYS else Found(_MANY))
    return founds[-1]


def _of_kind(callee: Callee, given: Given) -> tuple[Callee, _Looks]:
    """What is found of such a call by now, to which is added; with the codes of what is called."""
    known: dict[Any, _Looks] = kept_with(callee.owner, "looks", {})
    changes = replaced.changes()
    made = has_generator()  # without it a call makes it, and is called whole
    kind = given.kind, callee.state, callee.code and tf.executing_eagerly(), changes, made
    if callee.code is None:
        return callee, known.setdefault(kind, _Looks([], {}))
    if kind not in known and len(known) >= _LOOKS:
        kind = given.kind, None, tf.executing_eagerly(), changes, made  # whatever it does, its operations are seen
    beside = tuple(map(id, callee.code.beside))
    verdicts: list[Verdict] = kept_with(callee.owner, "verdicts", {}).setdefault((kind, beside), [])
    place = next((place for place, each in enumerate(verdicts) if each.holds), None)
    if place is None:
        if len(verdicts) >= _STATES:
            return callee, _Looks([Found(_CHANGES)], {})
        place = len(verdicts)
        arguments, options = given.structure
        verdicts.append(verdict(callee.code.entry, callee.code.beside, arguments, options, given.arrays))
    found = known.setdefault((kind, beside, place), _Looks([], {}))
    if verdicts[place].reason and not found.founds:
        found.founds.append(_agreed(Found(verdicts[place].reason), callee))
    code = callee.code._replace(codes=verdicts[place].reads.codes)
    return callee._replace(code=code), found


def _seen(callee: Callee, given: Given, kept: Kept) -> Found:
    begun = time.monotonic()
    try:
        found = _look(callee, given, kept)
        _tell(time.monotonic() - begun)
    except LeftBehindError as error:
        raise TfdpError(f"{callee.name}, called at {call_site()}, or a layer in it, {error}") from error
    if callee.runs_own_code_eagerly and not found.reason:
        limit = "" if found.is_alone else _EAGERLY
        found = found._replace(reason=limit or (_TABLES if found.pattern.lookups else ""))
    return _agreed(found, callee)


def _tell(seconds: float) -> None:
    """What a user waits for."""
    _spent.append(seconds)
    if sum(_spent) > _LONG and current().topology.rank == 0:
        say_once(_WAITS)


def _look(callee: Callee, given: Given, kept: Kept) -> Found:
    """What is found where all tensors of the batch's length are rows of it; else where those of the first one's rank
    are, or it alone.

    A mask over the words of a text may be as long as the batch.
    """
    first, *others = _choices(given)
    found = look(_asked(callee, given, kept, first))._replace(by_rows=first)
    for by_rows in others if found.reason else ():
        other = look(_asked(callee, given, kept, by_rows))._replace(by_rows=by_rows)
        if not other.reason:
            return other
    return found


def _asked(callee: Callee, given: Given, kept: Kept, by_rows: tuple[bool, ...]) -> Asked:
    return Asked(callee.call, given.structure, by_rows, kept, callee.owner, callee.code)


def _choices(given: Given) -> list[tuple[bool, ...]]:
    """Which leaves may be rows."""
    first = given.by_rows.index(True)
    rank = given.leaves[first].shape.rank
    alike = tuple(rows and each.shape.rank == rank for each, rows in zip(given.leaves, given.by_rows, strict=True))
    alone = tuple(index == first for index in range(len(given.by_rows)))
    return list(dict.fromkeys((given.by_rows, alike, alone)))


def _agreed(found: Found, callee: Callee) -> Found:
    """The same on all workers, each of which has seen to its own rows: what all have found, or why one of them says
    that it cannot be divided."""
    pattern = found.pattern
    seen = sorted(pattern.draws.items()), list(pattern.lookups.values()), found.factors, found.by_rows
    kind = mix(*seen, callee.settings(callee.state)) % 2**62
    topology, transport, label = current().topology, current().transport, Label("look at a call", callee.name)
    with tf.init_scope(), unrecorded():
        said = tf.constant([kind, -kind, topology.rank if found.reason else topology.size], tf.int64)
        low, high, refusing = map(int, transport.allreduce([said], Min, label)[0].numpy())
        if refusing < topology.size:
            reason = transport.broadcast_bytes(found.reason.encode(), refusing, label).decode()
            return found if found.reason else Found(reason)
    return found if low == -high else Found("is divided otherwise, or has other settings, on another worker")
