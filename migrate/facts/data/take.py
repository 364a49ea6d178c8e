"""A batch that is taken out of arrays, and the way on which it was found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

import libcst as cst

from ..program import Atom, Unknown

Loop = cst.For | cst.While


@dataclass(frozen=True)
class Take:
    """An expression that takes a batch.

    node: whose rows are sharded. size: what says how many rows, where that is one thing; sizes: the places that say
    it within the batch; header: those in its loop's range. steps: a number of steps, in which the size has no part.
    loops: the loops around it, from the innermost outwards, through the calls on the way. counted: a counter chooses
    the rows, else a draw. array: what it is taken from.
    """

    node: cst.BaseExpression
    loops: tuple[Loop, ...]
    size: Atom | int | None = None
    sizes: tuple[cst.BaseExpression, ...] = ()
    header: tuple[cst.BaseExpression, ...] = ()
    steps: tuple[cst.BaseExpression, ...] = ()
    counted: bool = False
    sharded: bool = False
    array: cst.BaseExpression | None = None


@dataclass(frozen=True)
class Way:
    """How the walk came to an expression: the call by which it entered each function, and the loop that consumes."""

    calls: dict[cst.FunctionDef, cst.Call]
    consumer: cst.For | None = None
    indexing: bool = False
    entered: tuple[cst.Call, ...] = ()  # those of the calls that the walk itself went into, the outermost first

    def into(self, function: cst.FunctionDef, call: cst.Call) -> Way:
        return replace(self, calls={**self.calls, function: call}, entered=(*self.entered, call))

    def out_of(self, function: cst.FunctionDef) -> Way:
        """Back to where the call of a function stands."""
        rest = {f: c for f, c in self.calls.items() if f is not function}
        return replace(self, calls=rest, entered=tuple(c for c in self.entered if c in rest.values()))


class Sureness(IntEnum):
    """How sure it is that a place in a training loop is where its batches come from; the surest first."""

    TAKES = 0  # it takes rows or elements, or is filled step by step
    CALLS = 1  # code that is not in the file gives a value here
    CONVERTS = 2  # as before, but is given data: it may only compute with them
    KEEPS = 3  # nothing is taken: data that stay the same


@dataclass(frozen=True)
class Missed:
    """A place, evaluated in each step, at which a batch may be made that is not followed."""

    unknown: Unknown
    sureness: Sureness


@dataclass
class StepRows:
    """What a step takes.

    rows: expressions whose first axis is the batch's; calls: calls of the file's own functions in which it is taken;
    arrays: what the rows are taken of; turned: what makes something else than examples of the rows; missed: where rows
    may be taken that are not followed.
    """

    takes: dict[cst.BaseExpression, Take] = field(default_factory=dict)
    rows: set[cst.CSTNode] = field(default_factory=set)
    calls: set[cst.Call] = field(default_factory=set)
    arrays: set[cst.BaseExpression] = field(default_factory=set)
    turned: set[cst.CSTNode] = field(default_factory=set)
    missed: list[Missed] = field(default_factory=list)

    @property
    def surest(self) -> Missed | None:
        """Of the places at which a batch may be made that is not followed, the surest; of equals, the first."""
        return min(self.missed, key=lambda m: m.sureness, default=None)
