"""What a script assigns to a learning rate while it trains: made of the rate that is there, or one of its own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, parts, reaching
from .objects import RATES, plain_object

_SAME = frozenset({"numpy", "read_value", "value", "item"})
_CASTS = (
    "builtins.float",
    "tensorflow.cast",
    "tensorflow.identity",
    "tensorflow.convert_to_tensor",
    "keras.backend.get_value",
    "keras.backend.eval",
    "numpy.float32",
    "numpy.float64",
)
_CHOOSES = frozenset({"builtins.max", "builtins.min", "numpy.maximum", "numpy.minimum", "numpy.clip"}) | {
    f"tensorflow.{module}{name}" for module in ("", "math.") for name in ("maximum", "minimum")
}


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


class RateValues:
    """Answers for the values that are assigned to the rates of Keras optimizers."""

    def __init__(self, origins: Origins, present: Collection[cst.Param] = frozenset()) -> None:
        """present: parameters that are given the present rate."""
        self._origins, self._present = origins, present
        self._busy: set[cst.CSTNode] = set()

    def of(self, node: cst.BaseExpression) -> RateValue:
        """How a value is made, and what of it is to be scaled."""
        found = self._of(node)
        return RateValue(Made.ABSOLUTE, (node,)) if found.made is Made.ABSOLUTE else found

    def is_rate(self, node: cst.CSTNode) -> bool:
        """Whether an expression is the learning rate of what is certainly a Keras optimizer."""
        if isinstance(node, cst.Name):
            return self._is_present(node)
        read = isinstance(node, cst.Attribute) and node.attr.value in RATES
        return read and isinstance(node, cst.Attribute) and self._origins.kinds(node.value) == {Kind.OPTIMIZER}

    def _is_present(self, node: cst.Name) -> bool:
        """Whether a name is nothing but a parameter that is given the present rate."""
        if not self._present or node not in self._origins.index.parents:
            return False
        definitions = reaching(self._origins.index, node)
        return bool(definitions) and all(d.kind == "param" and d.value in self._present for d in definitions)

    def mentions_rate(self, node: cst.CSTNode) -> bool:
        """Whether the learning rate of what may be an optimizer has part in a value."""
        found = parts(self._origins, node)
        read = [n for n in found if isinstance(n, cst.Attribute) and n.attr.value in RATES]
        given = any(isinstance(n, cst.Name) and self._is_present(n) for n in found)
        return given or any(not plain_object(n.value, self._origins) for n in read)

    def _of(self, node: cst.BaseExpression) -> RateValue:
        if node in self._busy:
            return _UNKNOWN
        self._busy.add(node)
        try:
            return self._made(node)
        finally:
            self._busy.discard(node)

    def _made(self, node: cst.BaseExpression) -> RateValue:
        if self.is_rate(node):
            return _RELATIVE
        if not self._mentions_optimizer(node):
            return RateValue(Made.ABSOLUTE)
        match node:
            case cst.BinaryOperation():
                return self._of_operation(node)
            case cst.IfExp():
                return self._each([node.body, node.orelse])
            case cst.Call():
                return self._of_call(node)
            case cst.Name():
                return self._of_name(node)
        return _UNKNOWN

    def _of_operation(self, node: cst.BinaryOperation) -> RateValue:
        left, right = self._of(node.left), self._of(node.right)
        if isinstance(node.operator, cst.Multiply) and {left.made, right.made} == {Made.RELATIVE, Made.ABSOLUTE}:
            return left if left.made is Made.RELATIVE else right
        if isinstance(node.operator, cst.Divide) and (left.made, right.made) == (Made.RELATIVE, Made.ABSOLUTE):
            return left
        if isinstance(node.operator, cst.Add | cst.Subtract):
            return self._each([node.left, node.right])
        return _UNKNOWN

    def _of_call(self, node: cst.Call) -> RateValue:
        api = self._origins.names.api(node.func) or ""
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in _SAME and not node.args:
            return self._of(node.func.value)
        if api in _CASTS and node.args and not node.args[0].star:
            return self._of(node.args[0].value)
        if api in _CHOOSES and not any(a.star or a.keyword for a in node.args):
            return self._each([a.value for a in node.args])
        function = self._origins.function(node.func)
        if function is not None and self._origins.calls_of(function) == [node]:
            return self._of_returns(function)
        return self._of_origins(node)

    def _of_name(self, node: cst.Name) -> RateValue:
        return self._of_origins(node)

    def _of_returns(self, function: cst.FunctionDef) -> RateValue:
        """Of a function of the file that nothing else calls: what it returns is scaled there."""
        returned = [r.value for r in self._origins.index.returns[function] if r.value is not None]
        return self._each(returned) if returned else _UNKNOWN

    def _of_origins(self, node: cst.BaseExpression) -> RateValue:
        """Of a name, or a call of the file's own function: every value that it can have is made alike."""
        scale: list[cst.BaseExpression] = []
        found = self._origins.of(node)
        for origin in found:
            if origin.node is node or origin.path:
                return _UNKNOWN
            if isinstance(origin.node, cst.AugAssign):
                falls = isinstance(origin.node.operator, cst.MultiplyAssign | cst.DivideAssign)
                if not falls or self._mentions_optimizer(origin.node.value):
                    return _UNKNOWN
                continue
            if not isinstance(origin.node, cst.BaseExpression) or origin.node in self._busy:
                return _UNKNOWN
            made = self._of(origin.node)
            if made.made is not Made.RELATIVE:
                return _UNKNOWN
            scale += made.scale
        return RateValue(Made.RELATIVE, tuple(dict.fromkeys(scale))) if found else _UNKNOWN

    def _each(self, values: list[cst.BaseExpression]) -> RateValue:
        """Of a sum or a choice: what is not made of the rate is scaled by itself."""
        found = [self._of(v) for v in values]
        if any(f.made is Made.UNKNOWN for f in found):
            return _UNKNOWN
        own = [v for v, f in zip(values, found, strict=True) if f.made is Made.ABSOLUTE]
        return RateValue(Made.RELATIVE, tuple(dict.fromkeys([*own, *(s for f in found for s in f.scale)])))

    def _mentions_optimizer(self, node: cst.CSTNode) -> bool:
        """Whether an optimizer, or what may be one, has part in a value."""
        for each in parts(self._origins, node):
            if (
                isinstance(each, cst.Attribute)
                and each.attr.value in RATES
                and not plain_object(each.value, self._origins)
            ):
                return True
            if isinstance(each, cst.Name) and self._is_present(each):
                return True
            if isinstance(each, cst.Name) and Kind.OPTIMIZER in self._origins.kinds(each):
                return True
        return False
