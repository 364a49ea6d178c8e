"""Whether each row of a value comes from the same row of the batch, and what operations make of that.

Pure: nothing here looks at a script.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

import libcst as cst

from ..program import Unknown


class Of(Enum):
    """What a value is made of."""

    NOTHING = "only itself, in a loop"
    FREE = "no examples of the batch"
    ROWS = "each row of the same row of the batch"
    MOVED = "rows of the batch, at other places than in the batch, or not all of them"
    SIZE = "the number of examples in the batch"
    PLACES = "the places of the examples in the batch, as numbers"
    SHAPE = "a shape of which one number is that of examples"
    WHOLE = "all examples of the batch together"
    MIXED = "each row also of other rows of the batch"
    UNKNOWN = "not understood"


@dataclass(frozen=True)
class Value:
    """What a value is made of; `axis` is the batch's, from the front or, where negative, from the end.

    It has `rank` axes, where `base` is None; else at least as many, and of two values with one base the ranks differ by
    as much as the numbers do. `order` says which rows stand where, should they be moved. `why` is the place that makes
    it so, and `unsure` one that may mix rows, of a value that is made of rows otherwise.
    """

    of: Of
    axis: int = 0
    rank: int = 0
    base: cst.CSTNode | None = None
    new: bool = False  # made for the batch: zeros, noise and the like, which go with any rows
    several: bool = False  # it may be a tuple, list or dict of such values
    order: frozenset[object] = frozenset()
    why: Unknown | None = None
    unsure: Unknown | None = None


UNRANKED = cst.Name("rank")  # the base of values of which nothing is known
NOTHING, FREE, NUMBER = Value(Of.NOTHING), Value(Of.FREE, base=UNRANKED), Value(Of.FREE)
UNKNOWN, SIZE = Value(Of.UNKNOWN, base=UNRANKED), Value(Of.SIZE)
BATCH = Value(Of.ROWS, rank=2, base=UNRANKED, several=True)
_APART = (Of.ROWS, Of.MOVED)
_UNTOUCHED = (Of.FREE, Of.NOTHING)


def is_free(value: Value) -> bool:
    """Whether a value is made of no examples."""
    return value.of in _UNTOUCHED


def has_rows(value: Value) -> bool:
    """Whether a value has an axis of examples, each apart."""
    return value.of in _APART


def whole(node: cst.CSTNode, because: Unknown | None = None) -> Value:
    """What a place makes of all examples together."""
    reason = "puts all examples of the batch together"
    return Value(Of.WHOLE, base=UNRANKED, why=Unknown(node, reason, because))


def made(axis: int, rank: int, base: cst.CSTNode | None) -> Value:
    """New rows for the batch."""
    return Value(Of.ROWS, axis, rank, base, new=True)


def mixed(node: cst.CSTNode, reason: str, because: Unknown | None = None) -> Value:
    """What a place makes that mixes rows."""
    return Value(Of.MIXED, base=UNRANKED, why=Unknown(node, reason, because))


def unknown(node: cst.CSTNode, reason: str, because: Unknown | None = None) -> Value:
    """What a place makes that is not understood."""
    return Value(Of.UNKNOWN, base=UNRANKED, why=Unknown(node, reason, because))


def join(values: Iterable[Value]) -> Value:
    """A value that may be any of these."""
    known = [v for v in values if v.of is not Of.NOTHING]
    if not known:
        return NOTHING
    for of in (Of.MIXED, Of.UNKNOWN):
        found = [v for v in known if v.of is of]
        if found:
            return next((v for v in found if v.why is not None), found[0])
    batch = [v for v in known if v.of is not Of.FREE]
    ranked = batch or known
    first = ranked[0]
    several, unsure = any(v.several for v in known), next((v.unsure for v in known if v.unsure is not None), None)
    if any((v.rank, v.base) != (first.rank, first.base) for v in ranked):
        first = replace(first, rank=min(v.rank for v in ranked), base=UNRANKED)
    first = replace(first, several=several, unsure=unsure)
    kinds = {v.of for v in batch}
    if kinds <= {Of.ROWS, Of.MOVED} and kinds:
        if len({v.axis for v in batch}) > 1:
            return replace(UNKNOWN, several=several)
        order = frozenset().union(*(v.order if v.of is Of.MOVED else {None} for v in batch))
        why = next((v.why for v in batch if v.of is Of.MOVED and v.why is not None), None)
        return replace(first, of=Of.MOVED, order=order, why=why) if Of.MOVED in kinds else first
    if kinds == {Of.PLACES, Of.SIZE}:
        return next(v for v in batch if v.of is Of.PLACES)
    if kinds == {Of.WHOLE, Of.SIZE}:
        return next(v for v in batch if v.of is Of.WHOLE)
    return first if len(kinds) <= 1 else replace(UNKNOWN, several=several)


def elementwise(node: cst.CSTNode, values: Iterable[Value]) -> Value:
    """A function of the elements at one place."""
    known = [v for v in values if v.of is not Of.NOTHING]
    for of in (Of.MIXED, Of.UNKNOWN):
        found = [v for v in known if v.of is of]
        if found:
            return next((v for v in found if v.why is not None), found[0])
    rows = [v for v in known if has_rows(v)]
    met = next((v for v in known if v.of is Of.WHOLE), None)
    if met is not None:
        reason = "puts each example together with a value of all of them"
        return mixed(node, reason, met.why) if rows else replace(met, several=False)
    if rows:
        if any(v.of is Of.PLACES for v in known):
            return unknown(node, "puts examples together with the numbers of their places in the batch")
        if any(v.of is Of.SIZE for v in known):
            return mixed(node, "grows or falls with the number of examples in the batch", _size_of(known))
        return _aligned(node, rows, [v for v in known if v.of is Of.FREE])
    placed = next((v for v in known if v.of is Of.PLACES), None)
    if placed is not None:
        return replace(placed, several=False)
    sized = next((v for v in known if v.of in {Of.SIZE, Of.SHAPE}), None)
    if sized is not None:
        return replace(sized, of=Of.SIZE)
    if not known:
        return NOTHING
    ranked = {v.base for v in known} == {None}
    return Value(Of.FREE, rank=max(v.rank for v in known), base=None if ranked else UNRANKED)


def together(node: cst.CSTNode, values: Iterable[Value]) -> Value:
    """What something makes of several values that it puts together in a way of its own, each row by itself."""
    known = [v for v in values if v.of not in {Of.SIZE, Of.SHAPE, Of.PLACES}]
    found = [replace(v, rank=2, base=UNRANKED) if has_rows(v) else v for v in known]
    if len([v for v in known if has_rows(v)]) > 1:
        return elementwise(node, found)
    return elementwise(node, known)


def _size_of(values: list[Value]) -> Unknown | None:
    return next((v.why for v in values if v.of is Of.SIZE), None)


def _aligned(node: cst.CSTNode, rows: list[Value], free: list[Value]) -> Value:
    """What several values of rows give together: their last axes meet."""
    moved = {v.order if v.of is Of.MOVED else frozenset() for v in rows if not v.new}
    if len(moved) > 1:
        because = next((v.why for v in rows if v.of is Of.MOVED), None)
        return mixed(node, "puts examples together with others of their batch", because)
    top = max(rows, key=lambda v: (v.rank, not v.new))
    for value in rows:
        same = value.base is top.base and value.base is not UNRANKED
        apart = value.axis - value.rank != top.axis - top.rank if same and top.axis >= 0 <= value.axis else False
        if apart or (same and (value.axis < 0) == (top.axis < 0) and value.axis < 0 and value.axis != top.axis):
            if min(value.rank, top.rank) < 2 or value.rank == top.rank:
                return mixed(node, "pairs each example with every other one of its batch", None)
            return unknown(node, "puts values with different numbers of axes together")
        if not same and value.axis != top.axis:
            return unknown(node, "puts values together whose examples may stand along different axes")
    unsure = next((v.unsure for v in rows if v.unsure is not None), None)
    told = next((v for v in rows if not v.new), top)
    found = replace(top, of=told.of, order=told.order, why=told.why, new=told.new, several=False, unsure=unsure)
    wider = max((v.rank for v in free if v.base is None), default=0)
    if found.base is None and found.axis >= 0 and wider > found.rank:
        found = replace(found, axis=found.axis + wider - found.rank, rank=wider)
    return found


# --- axes -------------------------------------------------------------------------------------------------------------


def is_batch(value: Value, axis: int) -> bool | None:
    """Whether an axis is the batch's; None where that hangs on how many axes there are."""
    if (axis < 0) == (value.axis < 0):
        return axis == value.axis
    front, back = max(axis, value.axis), min(axis, value.axis)
    if value.base is None:
        return front - value.rank == back
    return False if value.rank > front - back else None


def over(node: cst.CSTNode, value: Value, axes: tuple[int, ...] | None, kept: bool) -> Value:
    """What putting elements along axes together makes; all of them for (), and axes not known for None."""
    if not has_rows(value):
        return _of_others(node, value)
    found = _meets(value, axes)
    if found:
        return whole(node, value.why)
    if found is None or axes is None:
        return unknown(node, "may go along the axis of the batch: how many axes there are is not known here")
    left = replace(value, several=False)
    if kept:
        return left
    before = sum(1 for a in axes if a >= 0 and value.axis >= 0 and a < value.axis)
    behind = sum(1 for a in axes if a < 0 and value.axis < 0 and a > value.axis)
    return replace(left, axis=value.axis - before + behind, rank=max(value.rank - len(axes), 1))


def along(node: cst.CSTNode, value: Value, axes: tuple[int, ...] | None) -> Value:
    """What an operation makes that keeps the shape, of all elements along axes."""
    if not has_rows(value):
        return _of_others(node, value)
    found = _meets(value, axes)
    if found:
        return mixed(node, "makes each example of all those along the axis of the batch", value.why)
    if found is None:
        return unknown(node, "may go along the axis of the batch: how many axes there are is not known here")
    return replace(value, several=False)


def reordered(node: cst.CSTNode, value: Value, axes: tuple[int, ...] | None, order: object) -> Value:
    """What another order along axes makes."""
    if not has_rows(value):
        return _of_others(node, value)
    found = _meets(value, axes)
    if found:
        return moved(node, value, order)
    if found is None:
        return unknown(node, "may change the order along the axis of the batch")
    return replace(value, several=False)


def moved(
    node: cst.CSTNode, value: Value, order: object, what: str = "takes rows of the batch by their places"
) -> Value:
    """The same rows, or some of them, at other places."""
    found = value.order | {order}
    return replace(value, of=Of.MOVED, several=False, order=found, why=Unknown(node, what, value.why))


def _meets(value: Value, axes: tuple[int, ...] | None) -> bool | None:
    """Whether one of the axes is the batch's."""
    if axes is None:
        return None
    if not axes:
        return True
    found = [is_batch(value, a) for a in axes]
    return True if True in found else None if None in found else False


def _of_others(node: cst.CSTNode, value: Value) -> Value:
    """What an operation makes of a value without an axis of examples."""
    if value.of in {Of.SIZE, Of.SHAPE}:
        return replace(SIZE, why=value.why or Unknown(node, "counts the examples of the batch"))
    return FREE if value.of is Of.FREE else replace(value, several=False)


def transposed(node: cst.CSTNode, value: Value, order: tuple[int, ...] | None) -> Value:
    """What a new order of axes makes; () turns them round."""
    if not has_rows(value):
        rank = value.rank if value.base is None else 0
        return replace(value, rank=rank, several=False)
    if order is None:
        return unknown(node, "puts the axes in an order that is not written out")
    if not order:
        axis = -(value.axis + 1)
        if value.base is None:
            axis %= value.rank
        return replace(value, several=False, axis=axis)
    size = len(order)
    axis = value.axis if value.axis >= 0 else size + value.axis
    places = [a % size for a in order]
    if axis not in places:
        return unknown(node, "puts the axes in an order that is not understood")
    return replace(value, several=False, axis=places.index(axis), rank=size, base=None)


def widened(value: Value, axis: int | None) -> Value:
    """What one more axis makes."""
    if axis is None:
        return replace(UNKNOWN, why=value.why) if has_rows(value) else value
    place = value.axis
    if axis >= 0 and place >= 0:
        place += axis <= place
    elif axis < 0 and place < 0:
        place -= axis > place
    elif axis < 0 <= place and value.base is None:
        place += value.rank + 1 + axis <= place
    return replace(value, several=False, axis=place, rank=value.rank + 1)


def product(node: cst.CSTNode, left: Value, right: Value, turned: tuple[bool, bool] = (False, False)) -> Value:
    """`left @ right`, of which the last two axes are turned round: those before them go along with one another."""
    odd = [v for v in (left, right) if v.of in {Of.MIXED, Of.UNKNOWN}]
    if odd:
        return replace(odd[0], several=False)
    if (not has_rows(left) and not has_rows(right)) or not {left.of, right.of} <= {*_APART, *_UNTOUCHED}:
        return elementwise(node, (left, right))
    summed = (-2 if turned[0] else -1, -1 if turned[1] else -2)
    inner = [is_batch(v, a) for v, a in zip((left, right), summed, strict=True) if has_rows(v)]
    outer = [is_batch(v, -3 - a) for v, a in zip((left, right), summed, strict=True) if has_rows(v)]
    if all(inner):
        return whole(node)
    if len(inner) > 1 and True in (*inner, *outer):
        return mixed(node, "pairs each example with every other one of its batch")
    if None in inner or (len(inner) > 1 and None in outer):
        return unknown(node, "may multiply examples with one another: how many axes there are is not known here")
    if len(inner) > 1:
        return _aligned(node, [left, right], [])
    value, other = (left, right) if has_rows(left) else (right, left)
    found = replace(value, several=False)
    if outer[0] and (value is right or turned[0]):
        return replace(found, axis=-1 if value is right else -2)
    lead = other.rank - value.rank if other.base is None and value.base is None else 0
    if lead > 0:
        found = replace(found, rank=other.rank, axis=found.axis + lead if found.axis >= 0 else found.axis)
    return found


def gradient(node: cst.CSTNode, of: Value, by: Value) -> Value:
    """By examples it is one of each, as far as what it is taken of keeps them apart; else one number of all."""
    if of.of in {Of.MIXED, Of.UNKNOWN} or is_free(of):
        return of
    return by if not is_free(by) else whole(node, of.why)


def because(value: Value) -> Unknown | None:
    """Why rows are, or may be, mixed."""
    return value.why if value.of in {Of.MIXED, Of.UNKNOWN, Of.MOVED} else value.unsure
