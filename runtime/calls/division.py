"""Calls that a tape records are divided: each worker computes its own rows, and gets the results of all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..collective import is_recording
from . import apart, carried, gathering, nets, own_sources, replaced, report, sight, widened
from .batch_look import Found
from .callee import Callee, Given, given_to
from .containers import holds_more
from .examples import is_tensor
from .found import found_again, found_of
from .guard import guarded
from .muted import printed_unless
from .names import unchanging
from .own_sight import Expected, Own
from .rows import Split, divided, every, length, mean, own, own_gradient, shared

_TRIES = 3  # of a call that takes another way each time
_STRAYS = "takes another way through its Python each time that it is called"


def called(callee_of: Callable[[], Callee], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """`callee_of().call(*arguments, **options)`, divided where it is to be and can be."""
    while is_due():
        try:
            return _called(callee_of(), arguments, options)
        except replaced.Met:  # in a look, which takes the layer for another from now on
            continue
    return callee_of().call(*arguments, **options)


def is_due() -> bool:
    """Whether calls are to be divided here: where a tape records, or `fit` validates, outside of those that are."""
    return (is_recording() or sight.is_validation()) and _is_free()


def continued(callee: Callee, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The same where it takes large rows that a divided call has given, whether a tape records or not: what it gives is
    gathered in their place."""
    due = _is_free() and any(map(_is_large, tf.nest.flatten((arguments, options))))
    return _called(callee, arguments, options) if due else callee.call(*arguments, **options)


def _is_free() -> bool:
    return sight.now() is None and not sight.is_whole() and not any(apart.places())


def _is_large(thing: Any) -> bool:
    known = gathering.of(thing) if is_tensor(thing) else None
    if known is None:
        return False
    size = known.rows.shape[1:].num_elements()
    return size is None or size * known.rows.dtype.size >= report.LARGE


def _called(callee: Callee, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    given = given_to(callee, (arguments, options))
    if isinstance(given, str):
        return undivided(callee, given, arguments, options)
    found = found_of(callee, given)
    if found is None:
        with sight.undivided():
            return callee.call(*arguments, **options)
    if callee.runs_own_code_eagerly:
        return _followed(callee, given, found, arguments, options)
    if found.reason:
        return undivided(callee, found.reason, arguments, options)
    return _divided(callee, given, found)


def _followed(callee: Callee, given: Given, found: Found, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A call of code that runs eagerly, divided where it takes a way on which a look has found that it can be.

    Such code only computes, and calls no layers: one that has strayed has changed nothing.
    """
    if found.reason:
        return undivided(callee, found.reason, arguments, options)
    for _ in range(_TRIES):
        try:
            with printed_unless(sight.Strayed):
                return _divided(callee, given, found)
        except sight.Strayed as strayed:
            found = found_again(callee, given, strayed.way)
        if found.reason:
            return undivided(callee, found.reason, arguments, options)
    return undivided(callee, _STRAYS, arguments, options)


def undivided(callee: Callee, reason: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The whole call, for this reason; what it calls may be divided, unless that is a part of Keras' own layers."""
    report.undivided(callee.name, reason)
    if reason == report.SINGLE:
        widened.note(callee.name, 1)
    if not callee.is_atom:
        return callee.call(*arguments, **options)
    with sight.undivided():
        return callee.call(*arguments, **options)


def _divided(callee: Callee, given: Given, found: Found) -> Any:
    given = given._replace(by_rows=found.by_rows)
    name, rows_given = callee.name, _rows(given, callee.name)
    widened.note(name, rows_given)
    split = divided(rows_given)
    leaves = []
    inside: dict[Any, Any] = {}  # what is given twice is one tensor
    for index, (each, by_rows) in enumerate(zip(given.leaves, given.by_rows, strict=True)):
        if is_tensor(each) and gathering.of(each) is None:
            nets.note(f"input {index + 1} of {name}", each)
        if (id(each), by_rows) not in inside:
            inside[id(each), by_rows] = _entering(each, by_rows, split, name)
        leaves.append(inside[id(each), by_rows])
    arguments, options = tf.nest.pack_sequence_as(given.structure, leaves)
    expected = Expected(found.factors, found.way) if callee.runs_own_code_eagerly else None
    here = Own(split, found.pattern, name, expected)
    rows = [each for each, by_rows in zip(leaves, given.by_rows, strict=True) if by_rows]
    call = unchanging(callee.call, here.refuse)
    with sight.seen(here, rows):
        code = callee.code
        results = guarded(code, call, arguments, options) if code else call(*arguments, **options)
    if code is None and (more := holds_more(results)):  # a guard has seen it of code
        here.refuse(f"gives a {more}")
    flat = tf.nest.flatten(results)
    if len(flat) != len(found.factors):
        here.refuse(f"gives {len(flat)} results")
    if here.given is not None and found.factors != tuple(here.given):
        here.refuse("gives other results row by row")
    report.divided(name)
    # What it gives as it was given, or twice, is one tensor in one process, too.
    known = {id(own_rows): each for own_rows, each in zip(leaves, given.leaves, strict=True) if is_tensor(each)}
    several = len({id(each) for each in flat}) > 1
    for each, factor in zip(flat, found.factors, strict=True):
        if id(each) not in known:
            known[id(each)] = _leaving(each, factor, split, name, several=several, parted=here.parts_ways)
    return tf.nest.pack_sequence_as(results, [known[id(each)] for each in flat])


def _entering(leaf: Any, by_rows: bool, split: Split, name: str) -> Any:
    if by_rows:
        return carried.moved(leaf, lambda each: own(each, split, name))
    if is_tensor(leaf) and leaf.dtype.is_floating:
        return carried.moved(leaf, lambda each: shared(each, name))
    return leaf


def _leaving(leaf: Any, factor: int, split: Split, name: str, *, several: bool, parted: bool) -> Any:
    """What is given of a result; several: whether there are others, which may follow from it. parted: no tape would
    know of that."""
    if not factor:
        result, whole = leaf, functools.partial(mean, name=name)
    else:
        rows = split.times(factor)
        result = carried.moved(leaf, lambda each: every(each, rows, name))
        whole = functools.partial(own_gradient, split=rows, name=name)
    marked = several and is_tensor(leaf)
    return own_sources.mark(result, leaf, whole, name if parted else "") if marked else result


def _rows(given: Given, name: str) -> Any:
    """The batch's length. Tensors of which it is not known before must have it."""
    leaves = [each for each, rows in zip(given.leaves, given.by_rows, strict=True) if rows]
    leaves.sort(key=lambda each: gathering.of(each) is None)
    first, *others = map(length, leaves)
    for each in others:
        if each is not first and not (isinstance(each, int) and isinstance(first, int)):
            message = (
                f"what {name} is given has different lengths, of which none was known before. Say the length of what "
                "has no rows of the batch, such as tf.ensure_shape(context, [1, ...])"
            )
            tf.debugging.assert_equal(each, first, message)
    return first
