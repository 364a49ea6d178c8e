"""Calls that train nothing: `run_epoch(valid, False)` of a function that takes gradients only `if training:`."""

from __future__ import annotations

from itertools import pairwise

import libcst as cst

from tfdp.migrate.facts.flow import reaching
from tfdp.migrate.facts.gradients import Gradient
from tfdp.migrate.facts.origins import Origins

_Way = dict[cst.FunctionDef, cst.Call]
_DEPTH = 8


def leads_to_no_update(origins: Origins, gradient: Gradient, calls: tuple[cst.CSTNode, ...]) -> bool:
    """Whether the gradient is certainly not taken, or not applied, by way of the calls, the innermost first.

    The flags on the way have to be written out: True, False or a text.
    """
    way: _Way = {}
    for inner, outer in pairwise(calls):
        function = origins.index.enclosing_function(inner)
        if function is not None and isinstance(outer, cst.Call):
            way[function] = outer
    if any(_left_out(origins, node, way) for node in calls):
        return True
    return bool(gradient.updates) and all(_left_out(origins, u.call, way) for u in gradient.updates)


def _left_out(origins: Origins, node: cst.CSTNode, way: _Way) -> bool:
    """Whether an `if` around a place keeps it from being reached."""
    child = node
    for parent in origins.index.ancestors(node):
        if isinstance(parent, cst.FunctionDef):
            return False
        if isinstance(parent, cst.If) and child is not parent.test:
            value = _value(origins, parent.test, way)
            if value is not None and bool(value) is not (child is parent.body):
                return True
        child = parent
    return False


def _value(origins: Origins, node: cst.BaseExpression, way: _Way, depth: int = 0) -> bool | str | None:
    """What a flag is where the calls of the way are made; None where that is not written out."""
    if isinstance(node, cst.SimpleString):
        return node.raw_value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = _value(origins, node.expression, way, depth)
        return None if inner is None else not inner
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        operator = node.comparisons[0].operator
        left = _value(origins, node.left, way, depth)
        right = _value(origins, node.comparisons[0].comparator, way, depth)
        if left is None or right is None or not isinstance(operator, cst.Equal | cst.NotEqual):
            return None
        return (left == right) is isinstance(operator, cst.Equal)
    if not isinstance(node, cst.Name) or depth > _DEPTH:
        return None
    if node.value in {"True", "False"}:
        return node.value == "True"
    found = reaching(origins.index, node)
    function = found[0].scope if len(found) == 1 and found[0].kind == "param" else None
    call = way.get(function) if isinstance(function, cst.FunctionDef) else None
    if call is None or not isinstance(function, cst.FunctionDef):
        return None
    given = origins.bind(call, function).get(node.value)
    return _value(origins, given, way, depth + 1) if given is not None else None
