"""Shapes as they are written: which of their numbers is the number of examples, and how many there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import libcst as cst

from ..program import Frames, Origins, ints, is_none
from . import values as rows
from .values import UNRANKED, Of, Value

Evaluate = Callable[[cst.CSTNode, Frames], Value]


@dataclass(frozen=True)
class Shape:
    """`axis` is the place of the number of examples, None where there is none; `ones` how many ones are in front.

    `open_front`: the first number is left to be what remains, or is another than the examples'. `flat`: that is the
    only one but one.
    """

    axis: int | None = None
    rank: int = 0
    base: cst.CSTNode | None = UNRANKED
    ones: int = 0
    open_front: bool = False
    flat: bool = False


def read(origins: Origins, value: Evaluate, node: cst.BaseExpression, frames: Frames) -> Shape:
    """A shape that is written as a list, as a number, or taken of a value."""
    return read_all(origins, value, [node], frames)


def read_all(origins: Origins, value: Evaluate, nodes: list[cst.BaseExpression], frames: Frames) -> Shape:
    """The same of one that may be given number by number."""
    if len(nodes) == 1:
        made = origins.made(nodes[0])
        if isinstance(made, cst.BinaryOperation) and isinstance(made.operator, cst.Add):
            return _joined(origins, value, made, frames)
        if isinstance(made, cst.Tuple | cst.List):
            nodes = [e.value for e in made.elements]
            if any(isinstance(e, cst.StarredElement) for e in made.elements):
                first = read_all(origins, value, nodes[:1], frames)
                return replace(first, base=UNRANKED)
        else:
            found = value(nodes[0], frames)
            if found.of is Of.SHAPE:
                return Shape(found.axis, found.rank, found.base)
            if found.of is Of.SIZE:
                return Shape(0, 1)
            number = ints(origins, nodes[0])
            return Shape(None, 1, None, open_front=True) if number else Shape()
    kinds = [value(n, frames) for n in nodes]
    axis = next((i for i, k in enumerate(kinds) if k.of is Of.SIZE), None)
    ones = 0
    for node in nodes:
        if ints(origins, node) != (1,):
            break
        ones += 1
    rest = bool(nodes) and (ints(origins, nodes[0]) == (-1,) or is_none(origins, nodes[0]))
    opened = axis is None and rest
    return Shape(axis, len(nodes), None, ones, opened)


def _joined(origins: Origins, value: Evaluate, made: cst.BinaryOperation, frames: Frames) -> Shape:
    """`tf.shape(x)[:1] + [4]`, `(-1,) + shape`."""
    left = read(origins, value, made.left, frames)
    return replace(left, base=UNRANKED)


def einsum(node: cst.CSTNode, equation: str, given: list[Value]) -> Value:
    """Letters name axes: those of the batch have to be one letter, which the result has, too."""
    terms, _, out = equation.replace(" ", "").partition("->")
    letters = terms.split(",")
    odd = [v for v in given if not rows.is_free(v) and not rows.has_rows(v)]
    if odd:
        return rows.elementwise(node, given)
    if len(letters) != len(given) or not out:
        return rows.unknown(node, "is an equation that is not understood")
    named = [(v, _letter(term, v.axis)) for v, term in zip(given, letters, strict=True) if rows.has_rows(v)]
    if not named:
        return Value(Of.FREE, rank=len(out), base=UNRANKED if "." in out else None)
    if len({name for _, name in named}) > 1:
        return rows.mixed(node, "pairs each example with every other one of its batch")
    name = named[0][1]
    if name not in out:
        return rows.whole(node, named[0][0].why)
    if name != "." and any(name in term for v, term in zip(given, letters, strict=True) if not rows.has_rows(v)):
        return rows.unknown(node, "multiplies the rows of the batch by numbers for their places")
    start = 0 if name == "." else out.index(name)
    if "..." in out and start > out.index("."):
        start -= len(out)
    found = rows.elementwise(node, [replace(v, axis=0, rank=1, base=None) for v, _ in named])
    if not rows.has_rows(found):
        return found
    return replace(found, axis=start, rank=len(out.replace("...", "")), base=UNRANKED if "." in out else None)


def _letter(term: str, axis: int) -> str:
    """The letter of an axis; a point where dots stand for it."""
    if "..." not in term:
        return term[axis] if -len(term) <= axis < len(term) else "?"
    before, _, after = term.partition("...")
    if axis >= 0:
        return before[axis] if axis < len(before) else "."
    return after[axis] if -axis <= len(after) else "."
