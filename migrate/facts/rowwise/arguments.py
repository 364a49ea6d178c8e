"""The arguments of a call: which tensors it is given, and along which axes it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from ..apis import AXES_BESIDE_AXIS, OPERANDS, RANGES
from ..program import Frames, Origins, argument, ints
from . import values as rows
from .values import Of, Value

Evaluate = Callable[[cst.CSTNode, Frames], Value]


class Arguments:
    """Answers for the arguments of calls."""

    def __init__(self, origins: Origins, value: Evaluate) -> None:
        self._origins, self._value = origins, value

    def _all(self, given: list[cst.BaseExpression], frames: Frames) -> list[Value]:
        return [self._value(g, frames) for g in given]

    def _members(self, given: list[cst.BaseExpression], frames: Frames) -> list[Value]:
        """The values of arguments, those of written lists one by one."""
        found: list[Value] = []
        for each in given:
            made = self._origins.made(each)
            if isinstance(made, cst.List | cst.Tuple) and made.elements:
                found += self._all([e.value for e in made.elements], frames)
            else:
                found.append(self._value(each, frames))
        return found

    def _first(self, call: cst.Call, given: list[cst.BaseExpression]) -> cst.BaseExpression:
        named = (a.value for a in call.args if a.keyword is None or a.keyword.value in OPERANDS)
        return next(named, given[0])

    def _axes(self, call: cst.Call, place: int | None) -> tuple[int, ...] | None:
        """The axes that a call names; () where it names none, None where they are not known."""
        found = next((g for key in AXES_BESIDE_AXIS if (g := argument(call, key)) is not None), None)
        found = found or (argument(call, "axis", place) if place is not None else None)
        return () if found is None else self._counted_axes(found.value) or ints(self._origins, found.value)

    def _counted_axes(self, node: cst.BaseExpression) -> tuple[int, ...]:
        """`list(range(len(x.shape) - 1))`: the first of the axes that it counts."""
        made = self._origins.made(node)
        if (
            isinstance(made, cst.Call)
            and self._origins.called(made) in {"builtins.list", "builtins.tuple"}
            and made.args
        ):
            made = self._origins.made(made.args[0].value)
        if not isinstance(made, cst.Call) or self._origins.called(made) not in RANGES:
            return ()
        first = ints(self._origins, made.args[0].value) if len(made.args) > 1 else (0,)
        return first or ()

    def _order(self, call: cst.Call) -> object:
        """What tells one new order of rows from another: the text of a call, but for what it is done to."""
        told = [self._origins.index.code(a.value) for a in call.args[1:]]
        return (self._origins.index.code(call.func), *told)

    def _others(self, call: cst.Call, frames: Frames) -> Value:
        """A function of which no table says anything."""
        given = self._members([a.value for a in call.args], frames)
        odd = rows.join(given)
        if rows.is_free(odd):
            return rows.FREE
        if odd.of in {Of.MIXED, Of.UNKNOWN}:
            return replace(odd, several=True)
        return rows.unknown(call, "is not known to keep the examples of the batch apart", odd.why)
