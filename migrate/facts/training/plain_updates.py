"""Updates written out in a training step, `w.assign_sub(rate * gradient)`: which of their factors is the rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from ..apis import SAME_NUMBER
from ..program import Origin, Origins, Problem, assigned, method, reaching, within_itself

_SCALED = "tfdp.runtime.scale_lr"
_NEXT = "write the update as variable.assign_sub(rate * gradient), with one rate that is a number or an argument"

Factors = Callable[[cst.BaseExpression | None], list[cst.BaseExpression]]


@dataclass(frozen=True)
class PlainRate:
    """The rate of an update written out: an expression in it."""

    call: cst.Call
    factor: cst.BaseExpression
    scaled: bool


class PlainUpdates:
    """Finds the factor of an update that is a number given by the script."""

    def __init__(self, origins: Origins, factors: Factors) -> None:
        self._origins, self._factors = origins, factors

    def rate(self, call: cst.Call, amount: cst.BaseExpression | None) -> PlainRate | Problem:
        """The factor that is the rate of one update, where all the rest is a second one: the gradient.

        A third one, or a divisor, may change with the step.
        """
        factors = self._factors(amount)
        numbers = [f for f in factors if self._is_number(f)]
        if len(numbers) != 1 or len(factors) != 2 or self._divides(amount):
            reason = "the learning rate of this update by hand is not found: no single factor scales it"
            return Problem("TFDP020", call, reason, _NEXT)
        return PlainRate(call, numbers[0], self._is_scaled(numbers[0]))

    def _divides(self, amount: cst.BaseExpression | None) -> bool:
        return any(
            isinstance(n, cst.BinaryOperation) and isinstance(n.operator, cst.Divide) for n in self._read(amount)
        )

    def _read(self, node: cst.CSTNode | None) -> list[cst.BinaryOperation]:
        """The operations of a product, through names bound once."""
        if isinstance(node, cst.BinaryOperation):
            return [node, *self._read(node.left), *self._read(node.right)]
        if isinstance(node, cst.UnaryOperation):
            return self._read(node.expression)
        value = assigned(self._origins.index, node) if node is not None else None
        return self._read(value) if isinstance(value, cst.BinaryOperation) else []

    def _is_scaled(self, rate: cst.BaseExpression) -> bool:
        return any(self._origins.called(o.node) == _SCALED for o in self._origins.of(rate))

    def _is_number(self, node: cst.CSTNode) -> bool:
        found = self._origins.of(node)
        return bool(found) and all(self._given(o) for o in found) and not self._bound_again(node)

    @within_itself(False)
    def _given(self, origin: Origin) -> bool:
        """Whether a value is a number of the script, or of its arguments: none that changes from step to step, as what
        is made of itself does."""
        node = origin.node
        if origin.path:
            return False
        if isinstance(node, cst.Integer | cst.Float):
            return True
        if isinstance(node, cst.UnaryOperation):
            return self._given(Origin(node.expression))
        if isinstance(node, cst.BinaryOperation):
            return self._is_number(node.left) and self._is_number(node.right)
        if isinstance(node, cst.Attribute):
            made = self._origins.one(node.value)
            return made is not None and method(made.node) == "parse_args"
        api, args = self._origins.called(node), node.args if isinstance(node, cst.Call) else ()
        return api == _SCALED or (api in SAME_NUMBER and bool(args) and self._is_number(args[0].value))

    def _bound_again(self, node: cst.CSTNode) -> bool:
        """Whether a name is bound in several places: it may fall during training."""
        if not isinstance(node, cst.Name):
            return False
        definitions = reaching(self._origins.index, node)
        return len(definitions) > 1 or any(d.kind not in {"assign", "param"} for d in definitions)
