"""Calls that a tape records are divided: each worker computes its own rows, and gets the results of all."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ..collective import is_recording
from ..foundation import Min, TfdpError, call_site
from ..framework import unrecorded
from ..job import current, mix
from ..transports import Label
from . import apart, carried, gathering, nets, own_sources, replaced, report, sight
from .arrays import may_tell
from .containers import holds_more
from .examples import is_tensor, kind_of
from .guard import Code, guarded
from .kept import Kept
from .look import Asked, Call, Found, LeftBehindError, is_possible, look
from .names import unchanging
from .own_sight import Own
from .rows import Split, divided, every, length, mean, own, own_gradient, shared


class Callee(NamedTuple):
    """What is called: the function, by what it is known, what messages call it, and what a look may change.

    is_atom: whether nothing of what it calls is to be divided. state: by what it is another one, besides its owner.
    code: that of the script's own in it, if there is any. takes_arrays: whether that gets NumPy's arrays as they are.
    """

    call: Call
    owner: Any
    name: str
    kept: Callable[[], Kept]
    is_atom: bool
    state: Any = None
    code: Code | None = None
    takes_arrays: bool = False


class _Given(NamedTuple):
    """The arguments and options of a call, and which leaves are tensors with a row for each of the batch."""

    structure: Any
    leaves: list[Any]
    by_rows: tuple[bool, ...]

    @property
    def kind(self) -> Any:
        """What a look holds for: values but numbers, and which tensors there are, one of them twice perhaps."""
        kinds = map(kind_of, self.leaves, self.by_rows)
        first = {id(each): number for number, each in reversed(list(enumerate(self.leaves))) if is_tensor(each)}
        alike = tuple(first.get(id(each)) for each in self.leaves)
        return str(tf.nest.map_structure(lambda _: None, self.structure)), alike, *kinds


_LOOKS = 16  # at most by the configuration of a layer with code of the script's own, which may count steps
_EAGERLY = "runs eagerly, and calls layers: these are divided; in a tf.function all of it would be"
_TABLES = "runs eagerly, and looks up rows of variables: in a tf.function it would be divided"
_found: weakref.WeakKeyDictionary[Any, dict[Any, Found]] = weakref.WeakKeyDictionary()


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
    given = _given((arguments, options), callee)
    if isinstance(given, str):
        return undivided(callee, given, arguments, options)
    found = _looked_at(callee, given)
    if found is None:
        with sight.undivided():
            return callee.call(*arguments, **options)
    if found.reason:
        return undivided(callee, found.reason, arguments, options)
    if callee.code is not None and tf.executing_eagerly():
        if not found.is_alone:
            return undivided(callee, _EAGERLY, arguments, options)
        if found.pattern.lookups:
            return undivided(callee, _TABLES, arguments, options)
    return _divided(callee, given._replace(by_rows=found.by_rows), found)


def undivided(callee: Callee, reason: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The whole call, for this reason; what it calls may be divided, unless that is a part of Keras' own layers."""
    report.undivided(callee.name, reason)
    if not callee.is_atom:
        return callee.call(*arguments, **options)
    with sight.undivided():
        return callee.call(*arguments, **options)


def _given(structure: Any, callee: Callee) -> _Given | str:
    """The arguments, or why they cannot be divided."""
    if more := holds_more(structure):
        return f"takes a {more}"
    flat = tf.nest.flatten(structure)
    arrays = [x for x in flat if isinstance(x, np.ndarray)]
    if arrays and callee.takes_arrays and callee.code is not None and may_tell(callee.code.roots):
        return "takes NumPy's arrays, and may tell them from tensors: give it tensors, such as tf.constant(x)"
    made = {id(x): tf.convert_to_tensor(x) for x in arrays}
    leaves = [made.get(id(x), x) for x in flat]
    tensors = [each for each in leaves if is_tensor(each)]
    other = [each for each in leaves if not is_tensor(each) and isinstance(each, tf.__internal__.CompositeTensor)]
    if other and not all(isinstance(each, tf.Variable) for each in other):
        return f"takes a {type(other[0]).__name__}"
    if any(each.dtype in (tf.string, tf.variant, tf.resource) for each in tensors):
        return "takes strings"
    if any(each.shape.rank is None for each in tensors):
        return "takes a tensor of unknown rank"
    first = next((each for each in tensors if each.shape.rank), None)
    if first is None:
        return "takes no tensors"
    if first.shape[0] in (0, 1):
        return report.SINGLE if first.shape[0] else "no rows"
    by_rows = tuple(is_tensor(x) and bool(x.shape.rank) and x.shape[0] == first.shape[0] for x in leaves)
    return _Given(tf.nest.pack_sequence_as(structure, leaves), leaves, by_rows)


def _looked_at(callee: Callee, given: _Given) -> Found | None:
    """What the look at such a call has found, the same on all workers; None where it cannot be taken yet."""
    known = _found.setdefault(callee.owner, {})
    changes = replaced.changes()
    kind = given.kind, callee.state, callee.code and tf.executing_eagerly(), changes
    if callee.code is not None and kind not in known and len(known) >= _LOOKS:
        kind = given.kind, None, tf.executing_eagerly(), changes  # whatever it does, its operations are seen
    found = known.get(kind)
    if found is None:
        kept = callee.kept()
        if not is_possible(kept):
            return None
        try:
            found = known[kind] = _agreed(_look(callee, given, kept), callee)
        except LeftBehindError as error:
            raise TfdpError(f"{callee.name}, called at {call_site()}, or a layer in it, {error}") from error
    return found


def _look(callee: Callee, given: _Given, kept: Kept) -> Found:
    """What is found where all tensors of the batch's length are rows of it; else where those of the first one's rank
    are, or it alone.

    A mask over the words of a text may be as long as the batch.
    """
    first, *others = _ways(given)
    asked = Asked(callee.call, given.structure, first, kept, callee.owner, callee.code)
    found = look(asked)._replace(by_rows=first)
    for by_rows in others if found.reason else ():
        other = look(asked._replace(by_rows=by_rows))._replace(by_rows=by_rows)
        if not other.reason:
            return other
    return found


def _ways(given: _Given) -> list[tuple[bool, ...]]:
    """Which leaves may be rows."""
    first = given.by_rows.index(True)
    rank = given.leaves[first].shape.rank
    alike = tuple(rows and each.shape.rank == rank for each, rows in zip(given.leaves, given.by_rows, strict=True))
    alone = tuple(index == first for index in range(len(given.by_rows)))
    return list(dict.fromkeys((given.by_rows, alike, alone)))


def _agreed(found: Found, callee: Callee) -> Found:
    kind = (
        mix(sorted(found.pattern.draws.items()), list(found.pattern.lookups.values()), found.factors, found.by_rows)
        % 2**62
    )
    with tf.init_scope(), unrecorded():
        said = tf.constant([int(not found.reason), kind, -kind], tf.int64)
        fine, low, high = current().transport.allreduce([said], Min, Label("look at a call", callee.name))[0].numpy()
    if found.reason or (fine and low == -high):
        return found
    return Found("another worker's look says that it cannot be")


def _divided(callee: Callee, given: _Given, found: Found) -> Any:
    split, name = divided(_rows(given, callee.name)), callee.name
    leaves = []
    inside: dict[Any, Any] = {}  # what is given twice is one tensor
    for index, (each, by_rows) in enumerate(zip(given.leaves, given.by_rows, strict=True)):
        if is_tensor(each) and gathering.of(each) is None:
            nets.note(f"input {index + 1} of {name}", each)
        if (id(each), by_rows) not in inside:
            inside[id(each), by_rows] = _entering(each, by_rows, split, name)
        leaves.append(inside[id(each), by_rows])
    arguments, options = tf.nest.pack_sequence_as(given.structure, leaves)
    here = Own(split, found.pattern, name)
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


def _rows(given: _Given, name: str) -> Any:
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
