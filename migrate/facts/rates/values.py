"""What a script assigns to a learning rate while it trains: made of the rate that is there, or one of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

import libcst as cst

from ...catalogue import Kind
from ..apis import CHOOSES_ONE, RATES, READS_NUMBER, SAME_NUMBER
from ..program import Evaluator, Frames, Origins, method, parts, reaching, receiver, within_itself
from .objects import may_be_rate


class Made(Enum):
    """What a rate is made of."""

    RELATIVE = "the rate that is there, in proportion"
    ABSOLUTE = "anything but the rate that is there"
    UNKNOWN = "both, or not in proportion"


@dataclass(frozen=True)
class RateValue:
    """How a value is made; `scale` are the parts of it that have to be scaled."""

    made: Made
    scale: tuple[cst.BaseExpression, ...] = ()


_UNKNOWN = RateValue(Made.UNKNOWN)
_RELATIVE = RateValue(Made.RELATIVE)


class RateValues(Evaluator[RateValue]):
    """The domain of the values that are assigned to the rates of Keras optimizers.

    All values that a name may have are in proportion to the rate that is there, or the whole is unknown: so it is where
    one is made of the name itself.
    """

    nothing = _UNKNOWN
    unknown = _UNKNOWN

    def __init__(self, origins: Origins, present: Collection[cst.Param] = frozenset()) -> None:
        """present: parameters that are given the present rate."""
        super().__init__(origins)
        self._present = present

    # --- rates --------------------------------------------------------------------------------------------------------

    def is_rate(self, node: cst.CSTNode) -> bool:
        """Whether an expression is the learning rate of what is certainly a Keras optimizer."""
        if isinstance(node, cst.Attribute):
            return node.attr.value in RATES and self._origins.kinds(node.value) == {Kind.OPTIMIZER}
        return self._is_present(node)

    def _is_present(self, node: cst.CSTNode) -> bool:
        """Whether a name is nothing but a parameter that is given the present rate."""
        if not self._present or not isinstance(node, cst.Name) or node not in self._index.parents:
            return False
        definitions = reaching(self._index, node)
        return bool(definitions) and all(d.kind == "param" and d.value in self._present for d in definitions)

    def mentions_rate(self, node: cst.CSTNode) -> bool:
        """Whether the learning rate of what may be an optimizer has part in a value."""
        return any(self._is_present(n) or may_be_rate(n, self._origins) for n in parts(self._origins, node))

    def _mentions_optimizer(self, node: cst.CSTNode) -> bool:
        """Whether an optimizer, or what may be one, has part in a value."""
        names = (n for n in parts(self._origins, node) if isinstance(n, cst.Name))
        return self.mentions_rate(node) or any(Kind.OPTIMIZER in self._origins.kinds(n) for n in names)

    # --- the domain ---------------------------------------------------------------------------------------------------

    def join(self, values: Iterable[RateValue]) -> RateValue:
        """Of a name, or a function that is called in several places: every value that it can have is made alike."""
        found = list(values)
        return _together(found) if found and all(f.made is Made.RELATIVE for f in found) else _UNKNOWN

    def known(self, node: cst.CSTNode, frames: Frames) -> RateValue | None:
        """The rate itself, and what no optimizer has part in, which is scaled as a whole."""
        if self.is_rate(node):
            return _RELATIVE
        if isinstance(node, cst.BaseExpression) and not self._mentions_optimizer(node):
            return RateValue(Made.ABSOLUTE, (node,))
        function = self._origins.function(node.func) if isinstance(node, cst.Call) else None
        if isinstance(node, cst.Call) and function is not None and self._origins.calls_of(function) == [node]:
            return self._of_only_call(node, function, frames)
        return None

    @within_itself(_UNKNOWN)
    def _of_only_call(self, call: cst.Call, function: cst.FunctionDef, frames: Frames) -> RateValue:
        """Of a function of the file that nothing else calls: what it returns is scaled there."""
        given = self._index.given_back(function)
        return self.together(given, (*frames, (function, call))) if given else _UNKNOWN

    def together(self, values: Iterable[cst.BaseExpression], frames: Frames = ()) -> RateValue:
        """Of a sum, a choice or a comparison: what is not made of the rate is scaled by itself."""
        return _together([self.of(value, frames) for value in values])

    def compound(self, node: cst.CSTNode, frames: Frames) -> RateValue:
        """A sum or a choice, and a rate times, or by, a number."""
        if isinstance(node, cst.IfExp):
            return self.together([node.body, node.orelse], frames)
        if not isinstance(node, cst.BinaryOperation):
            return _UNKNOWN
        if isinstance(node.operator, cst.Add | cst.Subtract):
            return self.together([node.left, node.right], frames)
        left, right = self.of(node.left, frames), self.of(node.right, frames)
        if isinstance(node.operator, cst.Multiply) and left.made is Made.ABSOLUTE:
            left, right = right, left
        falls = isinstance(node.operator, cst.Multiply | cst.Divide)
        return left if falls and (left.made, right.made) == (Made.RELATIVE, Made.ABSOLUTE) else _UNKNOWN

    def changed(self, statement: cst.AugAssign, earlier: cst.Name, frames: Frames) -> RateValue:
        """`rate *= 0.5`."""
        scales = isinstance(statement.operator, cst.MultiplyAssign | cst.DivideAssign)
        return self.of(earlier, frames) if scales and not self._mentions_optimizer(statement.value) else _UNKNOWN

    def named_call(self, call: cst.Call, api: str, frames: Frames) -> RateValue:
        """The same number in another type, and the largest or smallest of some."""
        if api in SAME_NUMBER and call.args and not call.args[0].star:
            return self.of(call.args[0].value, frames)
        plain = not any(a.star or a.keyword for a in call.args)
        return self.together([a.value for a in call.args], frames) if api in CHOOSES_ONE and plain else _UNKNOWN

    def object_call(self, call: cst.Call, frames: Frames) -> RateValue:
        """`rate.numpy()`."""
        reads = method(call) in READS_NUMBER and not call.args
        return self.of(receiver(call), frames) if reads else _UNKNOWN

    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> RateValue:  # noqa: ARG002
        """Not in proportion to a rate, as far as is known."""
        return _UNKNOWN

    def iterated(self, iterable: cst.BaseExpression, path: tuple[int, ...], frames: Frames) -> RateValue:  # noqa: ARG002
        """Nor is an element."""
        return _UNKNOWN

    def reached(self, place: cst.CSTNode, frames: Frames) -> RateValue:  # noqa: ARG002
        """Where a value is made is asked of its assignment."""
        return _RELATIVE


def _together(found: list[RateValue]) -> RateValue:
    if any(f.made is Made.UNKNOWN for f in found):
        return _UNKNOWN
    return RateValue(Made.RELATIVE, tuple(dict.fromkeys(node for f in found for node in f.scale)))
