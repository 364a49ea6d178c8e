"""What subscripts take of the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from ..apis import NEW_AXIS
from ..program import Origins, ints
from . import values as rows
from .values import Of, Value

Evaluate = Callable[[cst.CSTNode], Value]


def subscript(origins: Origins, node: cst.Subscript, value: Value, of: Evaluate) -> Value:
    """`value[…]`."""
    parts = [e.slice for e in node.slice]
    if value.of is Of.SHAPE:
        return _of_shape(origins, node, value, parts)
    if not rows.has_rows(value):
        return _of_others(origins, node, value, parts, of)
    first = parts[0]
    key = first.value if isinstance(first, cst.Index) else None
    if (
        value.several
        and len(parts) == 1
        and key is not None
        and (ints(origins, key) or isinstance(key, cst.BaseString))
    ):
        return replace(value, several=isinstance(key, cst.BaseString))
    if isinstance(key, cst.BaseString) or (
        value.several and len(parts) == 1 and key is not None and _names_one(of(key))
    ):
        return value
    return _indexed(origins, node, replace(value, several=False), parts, of)


def _names_one(key: Value) -> bool:
    """Whether a key may say which of several values is meant."""
    return rows.is_free(key)


def _of_shape(origins: Origins, node: cst.Subscript, value: Value, parts: list[cst.BaseSlice]) -> Value:
    first = parts[0]
    place = ints(origins, first.value) if isinstance(first, cst.Index) else None
    if place:
        return replace(rows.SIZE, why=value.why) if rows.is_batch(value, place[0]) else Value(Of.FREE)
    if isinstance(first, cst.Slice):
        start = ints(origins, first.lower) if first.lower is not None else (0,)
        end = ints(origins, first.upper) if first.upper is not None else None
        if start == (0,) and value.axis == 0:
            return replace(
                value, rank=end[0] if end and end[0] > 0 else 1, base=None if end and end[0] > 0 else rows.UNRANKED
            )
        if start and start[0] > value.axis >= 0:
            return rows.FREE
    return rows.unknown(node, "takes numbers of a shape")


def _of_others(origins: Origins, node: cst.Subscript, value: Value, parts: list[cst.BaseSlice], of: Evaluate) -> Value:
    """Of what has no axis of examples: rows of a table, by what the rows say."""
    if not rows.is_free(value):
        return replace(value, several=False)
    given = [of(p.value) for p in parts if isinstance(p, cst.Index)]
    found = [g for g in given if not rows.is_free(g)]
    if not found:
        new = sum(1 for p in parts if _is_new(origins, p))
        single = [p.value for p in parts if isinstance(p, cst.Index) and not (_is_new(origins, p) or _is_dots(p))]
        known = value.base is None and value.rank and all(ints(origins, n) for n in single)
        return replace(value, rank=max(value.rank + new - len(single), 0)) if known else rows.FREE
    return rows.join(found) if all(rows.has_rows(g) for g in found) else rows.elementwise(node, found)


def _indexed(origins: Origins, node: cst.Subscript, value: Value, parts: list[cst.BaseSlice], of: Evaluate) -> Value:
    """Each part takes of one axis in turn; the dots stand for all that are not named."""
    dots = next((i for i, p in enumerate(parts) if _is_dots(p)), None)
    named = [p for p in parts if not _is_new(origins, p) and not _is_dots(p)]
    behind = sum(1 for p in parts[dots + 1 :] if not _is_new(origins, p)) if dots is not None else 0
    if value.axis < 0 and value.base is None:
        value = replace(value, axis=value.axis + value.rank)
    if value.axis < 0 and dots is None:
        return rows.unknown(node, "takes a part along an axis that may be the batch's")
    at: cst.BaseSlice | None = None
    if value.axis >= 0 and dots is None:
        at = named[value.axis] if value.axis < len(named) else None
    elif value.axis >= 0 and dots is not None:
        before = len(named) - behind
        at = named[value.axis] if value.axis < before else None
        if (
            value.axis >= before
            and behind
            and rows.is_batch(value, -behind) is not False
            and value.rank - value.axis <= behind
        ):
            at = named[before] if value.base is None else None
            if at is None:
                return rows.unknown(node, "takes a part along an axis that may be the batch's")
    elif -value.axis <= behind:
        at = named[len(named) + value.axis]
    found = _taken(origins, node, value, at, of)
    if not rows.has_rows(found):
        return found
    return _shaped(origins, found, parts, at)


def _taken(origins: Origins, node: cst.Subscript, value: Value, at: cst.BaseSlice | None, of: Evaluate) -> Value:
    """What is taken along the axis of the batch."""
    if at is None or (isinstance(at, cst.Slice) and _is_all(origins, at)):
        return value
    if isinstance(at, cst.Slice):
        told = (origins.index.code(n) if n is not None else "" for n in (at.lower, at.upper, at.step))
        return rows.moved(node, value, tuple(told))
    key = cst.ensure_type(at, cst.Index).value
    by = of(key)
    if by.of is Of.MIXED:
        return rows.mixed(node, "takes rows by what is made of all of them", by.why)
    if rows.has_rows(by) or by.of is Of.UNKNOWN:
        return rows.unknown(node, "takes rows of the batch by what is made of it", by.why)
    made = origins.made(key)
    return rows.moved(node, value, origins.index.code(made) if isinstance(made, cst.BaseNumber | cst.Name) else made)


def _shaped(origins: Origins, value: Value, parts: list[cst.BaseSlice], at: cst.BaseSlice | None) -> Value:
    """The axes that are left: numbers take theirs away, new ones come in."""
    new = sum(1 for p in parts if _is_new(origins, p))
    single = [p for p in parts if isinstance(p, cst.Index) and not (_is_new(origins, p) or _is_dots(p) or p is at)]
    written = all(ints(origins, p.value) for p in single)
    found = replace(value, rank=max(value.rank + new - len(single), 1), base=value.base if written else rows.UNRANKED)
    dots = next((i for i, p in enumerate(parts) if _is_dots(p)), len(parts))
    before, after = parts[:dots], parts[dots + 1 :][::-1]
    if value.axis >= 0:
        return replace(found, axis=_place(origins, value.axis, before, single))
    return replace(found, axis=-1 - _place(origins, -1 - value.axis, after, single))


def _place(origins: Origins, axis: int, parts: list[cst.BaseSlice], single: list[cst.Index]) -> int:
    """Where an axis, counted from the side of the first part, is afterwards."""
    old = place = 0
    for part in parts:
        if _is_new(origins, part):
            place += 1
            continue
        if old == axis:
            return place
        old += 1
        place += part not in single
    return place + axis - old


def _is_dots(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis)


def _is_new(origins: Origins, part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Index) and origins.names.api(part.value) in NEW_AXIS


def _is_all(origins: Origins, part: cst.Slice) -> bool:
    """Whether a slice takes everything, in its order."""
    lower = part.lower is None or ints(origins, part.lower) == (0,)
    step = part.step is None or ints(origins, part.step) == (1,)
    return lower and step and part.upper is None
