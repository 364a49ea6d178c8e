"""Hashes, and the order of sets: of texts each process has others, unless PYTHONHASHSEED is set before it starts."""

from __future__ import annotations

import libcst as cst

from ...catalogue import Kind
from ..apis import GIVES_NUMBERS, SAME_ELEMENTS, SPANS
from ..program import ITER, Origins, method, receiver

_FAR = 8  # steps back from an element


def alike(origins: Origins, node: cst.CSTNode, left: int = _FAR) -> bool:
    """Whether a value has one hash in all processes: a number, or several."""
    if left < 0:
        return False
    if isinstance(node, cst.BaseNumber):
        return True
    if isinstance(node, cst.UnaryOperation):
        return alike(origins, node.expression, left - 1)
    if isinstance(node, cst.BinaryOperation):
        return all(alike(origins, side, left - 1) for side in (node.left, node.right))
    if isinstance(node, cst.Tuple):
        return all(alike(origins, e.value, left - 1) for e in node.elements)
    if isinstance(node, cst.Call):
        return bool(GIVES_NUMBERS.match(origins.called(node)))
    if not isinstance(node, cst.Name | cst.Attribute):
        return False
    made = origins.of(node)
    return bool(made) and all(_is_alike(origins, o.node, o.path, node, left - 1) for o in made)


def _is_alike(origins: Origins, made: cst.CSTNode, path: tuple[int, ...], asked: cst.CSTNode, left: int) -> bool:
    if path == (ITER,) and isinstance(made, cst.BaseExpression):
        return elements_alike(origins, made, left)
    return not path and made is not asked and alike(origins, made, left)


def elements_alike(origins: Origins, node: cst.CSTNode, left: int = _FAR) -> bool:
    """Whether all that a container holds has one hash in all processes."""
    if left < 0:
        return False
    if isinstance(node, cst.List | cst.Tuple | cst.Set):
        return all(alike(origins, e.value, left - 1) for e in node.elements)
    if isinstance(node, cst.ListComp | cst.GeneratorExp | cst.SetComp):
        return alike(origins, node.elt, left - 1)
    if isinstance(node, cst.BinaryOperation):
        return all(elements_alike(origins, side, left - 1) for side in (node.left, node.right))
    if isinstance(node, cst.Subscript):
        return elements_alike(origins, node.value, left - 1)
    if isinstance(node, cst.Call):
        return _given(origins, node, left)
    made = origins.of(node)
    known = [o for o in made if not o.path and o.node is not node]
    return bool(made) and len(known) == len(made) and all(elements_alike(origins, o.node, left - 1) for o in known)


def _given(origins: Origins, call: cst.Call, left: int) -> bool:
    api = origins.called(call)
    if api in SPANS or GIVES_NUMBERS.match(api):
        return True
    if api in SAME_ELEMENTS | {"builtins.set", "builtins.frozenset", "random.sample"}:
        return all(elements_alike(origins, a.value, left - 1) for a in call.args[:1])
    drawn = not api and method(call) and origins.kinds(receiver(call)) == {Kind.GENERATOR}
    return bool(drawn) and method(call) != "choice"
