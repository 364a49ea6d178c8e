"""What is known of an `if` where the arguments of the calls that lead to it settle its condition."""

from __future__ import annotations

import libcst as cst

from .asking import within_itself
from .flow import reaching
from .index import Definition
from .origins import Origins

Frames = tuple[tuple[cst.FunctionDef, cst.Call], ...]
"""Functions with the calls that run them, the innermost last: a parameter has the value that its call gives it, and no
other call's."""
_SAME, _OTHER = (cst.Equal, cst.Is), (cst.NotEqual, cst.IsNot)
_LOOSE = (cst.For, cst.While, cst.Try, cst.Lambda, cst.ClassDef)


def frame_of(frames: Frames, function: cst.CSTNode | None) -> int | None:
    """The place of the innermost frame that runs a function."""
    return next((i for i in reversed(range(len(frames))) if frames[i][0] is function), None)


def meant(origins: Origins, definitions: list[Definition], frames: Frames) -> list[Definition]:
    """Those of the definitions that the innermost call can come to: `if training:` is known for `make(x, True)`."""
    if not frames or len(definitions) < 2:
        return definitions
    order = origins.index.order
    found = [(d, reached(origins, d.statement, frames)) for d in definitions]
    possible = [d for d, comes in found if comes is not False]
    last = max((order[d.statement] for d, comes in found if comes), default=-1)
    return [d for d in possible if order[d.statement] >= last]


def reached(origins: Origins, node: cst.CSTNode, frames: Frames) -> bool | None:
    """Whether a run of the function around a place comes to it; None where that is not known."""
    if isinstance(node, cst.Param):
        return None
    known: bool | None = True
    child = node
    for parent in origins.index.ancestors(node):
        if isinstance(parent, cst.FunctionDef):
            return known if any(function is parent for function, _ in frames) else None
        if isinstance(parent, _LOOSE):
            known = None
        if isinstance(parent, cst.If) and child is not parent.test:
            truth = _truth(origins, parent.test, frames)
            if truth is not None and truth is not (child is parent.body):
                return False
            known = known if truth is not None else None
        child = parent
    return None


def _truth(origins: Origins, test: cst.BaseExpression, frames: Frames) -> bool | None:
    value = _constant(origins, test, frames)
    return bool(value[0]) if value else None


@within_itself(())
def _constant(origins: Origins, node: cst.CSTNode, frames: Frames) -> tuple[bool | str | None, ...]:
    """The value of an expression, as the one element; empty where the frames do not settle it."""
    if isinstance(node, cst.SimpleString):
        return (str(node.evaluated_value),)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = _truth(origins, node.expression, frames)
        return () if inner is None else (not inner,)
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        operator = node.comparisons[0].operator
        left, right = (_constant(origins, n, frames) for n in (node.left, node.comparisons[0].comparator))
        if not left or not right or not isinstance(operator, (*_SAME, *_OTHER)):
            return ()
        return ((left == right) is isinstance(operator, _SAME),)
    return _of_name(origins, node, frames) if isinstance(node, cst.Name) else ()


def _of_name(origins: Origins, node: cst.Name, frames: Frames) -> tuple[bool | str | None, ...]:
    api = origins.names.api(node)
    if api in {"builtins.True", "builtins.False", "builtins.None"}:
        return ({"True": True, "False": False}.get(api.rpartition(".")[2]),)
    definitions = reaching(origins.index, node)
    if len(definitions) != 1 or definitions[0].path:
        return ()
    definition = definitions[0]
    if definition.kind == "assign" and isinstance(definition.value, cst.Name | cst.SimpleString):
        return _constant(origins, definition.value, frames)
    at = frame_of(frames, definition.scope)
    if definition.kind != "param" or at is None:
        return ()
    bound = origins.bind(frames[at][1], frames[at][0]).get(definition.name)
    return _constant(origins, bound, frames[:at]) if bound is not None else ()
