"""Whether an object is certainly made inside a part of the program, so that nothing outside holds it."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import libcst as cst

from ..apis import GIVES_ELEMENT, GIVES_HELD, HOLDS_GIVEN, LEAVES_OBJECT, LEAVES_STATE
from ..program import Origins, method, receiver, within_itself
from .writers import Writers

_IMMUTABLE = cst.Integer | cst.Float | cst.BaseString | cst.Comparison
_COMPREHENSION = cst.ListComp | cst.SetComp | cst.GeneratorExp


@dataclass(frozen=True)
class Local:
    """Asks objects and what containers hold: a container that is made inside may hold what is not."""

    origins: Origins
    writers: Writers

    def holds(self, node: cst.CSTNode, inside: AbstractSet[cst.CSTNode]) -> bool:
        """Whether an object is made inside."""
        made = self.origins.of(node)
        return bool(made) and all(self._is_made(o.node, bool(o.path), inside) for o in made)

    def _is_made(self, node: cst.CSTNode, element: bool, inside: AbstractSet[cst.CSTNode]) -> bool:
        if node not in inside:
            return False
        return self._elements(node, frozenset(inside)) if element else self._whole(node, frozenset(inside))

    @within_itself(False)
    def _whole(self, node: cst.CSTNode, inside: frozenset[cst.CSTNode]) -> bool:
        if isinstance(node, cst.Param | cst.Name):
            return False
        if isinstance(node, cst.Attribute):
            return self.holds(node.value, inside)
        if isinstance(node, cst.Subscript):
            return self._of_elements(node.value, inside)
        if isinstance(node, cst.BooleanOperation):
            return self.holds(node.left, inside) and self.holds(node.right, inside)
        return self._given(node, inside) if isinstance(node, cst.Call) else True

    def _given(self, call: cst.Call, inside: frozenset[cst.CSTNode]) -> bool:
        """Whether a call gives an object that it has made."""
        if api := self.origins.called(call):
            held = GIVES_ELEMENT.match(api)
            return self._all_given(call, inside) if held else LEAVES_STATE.match(api) is not None
        if self.origins.constructed(call) is not None or self.writers.kind(call) is not None:
            return True
        if not isinstance(call.func, cst.Attribute):
            return False
        if method(call) in GIVES_HELD:
            return self._of_elements(receiver(call), inside)
        return method(call) in LEAVES_OBJECT or self.holds(receiver(call), inside)

    def _of_elements(self, node: cst.CSTNode, inside: frozenset[cst.CSTNode]) -> bool:
        """Whether all that an object holds is made inside."""
        made = self.origins.of(node)
        return bool(made) and all(self._is_made(o.node, True, inside) for o in made)

    @within_itself(False)
    def _elements(self, node: cst.CSTNode, inside: frozenset[cst.CSTNode]) -> bool:
        if isinstance(node, _IMMUTABLE):
            return True
        if isinstance(node, _COMPREHENSION):
            return self.holds(node.elt, inside)
        if isinstance(node, cst.DictComp):
            return self.holds(node.value, inside)
        if isinstance(node, cst.Tuple | cst.List | cst.Set | cst.Dict):
            return bool(node.elements) and all(self._held(e.value, inside) for e in node.elements)
        if isinstance(node, cst.BinaryOperation):
            return self._of_elements(node.left, inside) and self._of_elements(node.right, inside)
        if isinstance(node, cst.Subscript):
            return self._of_elements(node.value, inside)
        return isinstance(node, cst.Call) and self._call_holds(node, inside)

    def _held(self, node: cst.CSTNode, inside: frozenset[cst.CSTNode]) -> bool:
        return isinstance(node, _IMMUTABLE) or self.holds(node, inside)

    def _call_holds(self, call: cst.Call, inside: frozenset[cst.CSTNode]) -> bool:
        """Whether what a call gives holds nothing but what is made inside."""
        if api := self.origins.called(call):
            return self._all_given(call, inside) if HOLDS_GIVEN.match(api) else LEAVES_STATE.match(api) is not None
        if isinstance(call.func, cst.Attribute):
            return method(call) in LEAVES_OBJECT - GIVES_HELD or self._of_elements(receiver(call), inside)
        return False

    def _all_given(self, call: cst.Call, inside: frozenset[cst.CSTNode]) -> bool:
        return bool(call.args) and all(self._of_elements(arg.value, inside) for arg in call.args)
