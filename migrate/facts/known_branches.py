"""Which definitions of a name are meant inside one call of a function, where its arguments settle the conditions."""

from __future__ import annotations

import libcst as cst

from tfdp.migrate.facts.flow import reaching
from tfdp.migrate.facts.index import Definition
from tfdp.migrate.facts.origins import Origins

_Calls = tuple[tuple[cst.FunctionDef, cst.Call], ...]
_LOOSE = (cst.For, cst.While, cst.Try, cst.Lambda, cst.ClassDef)


def meant(origins: Origins, definitions: list[Definition], calls: _Calls) -> list[Definition]:
    """Those of the definitions that the innermost call can come to: `if training:` is known for `make(x, True)`."""
    if not calls or len(definitions) < 2:
        return definitions
    order = origins.index.order
    found = [(d, _reached(origins, d.statement, calls)) for d in definitions]
    possible = [d for d, reached in found if reached is not False]
    last = max((order[d.statement] for d, reached in found if reached), default=-1)
    return [d for d in possible if order[d.statement] >= last]


def _reached(origins: Origins, statement: cst.CSTNode, calls: _Calls) -> bool | None:
    """Whether the call runs the statement; None where that is not known."""
    if isinstance(statement, cst.Param):
        return None
    known: bool | None = True
    child = statement
    for parent in origins.index.ancestors(statement):
        if isinstance(parent, cst.FunctionDef):
            return known if parent is calls[-1][0] else None
        if isinstance(parent, _LOOSE):
            known = None
        if isinstance(parent, cst.If) and child is not parent.test:
            truth = _truth(origins, parent.test, calls)
            if truth is not None and truth is not (child is parent.body):
                return False
            known = known if truth is not None else None
        child = parent
    return None


def _truth(origins: Origins, test: cst.BaseExpression, calls: _Calls) -> bool | None:
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = _truth(origins, test.expression, calls)
        return None if inner is None else not inner
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        left, right = (_constant(origins, n, calls) for n in (test.left, test.comparisons[0].comparator))
        if not left or not right:
            return None
        same = left == right
        operator = test.comparisons[0].operator
        return same if isinstance(operator, cst.Equal) else not same if isinstance(operator, cst.NotEqual) else None
    value = _constant(origins, test, calls)
    return bool(value[0]) if value else None


def _constant(origins: Origins, node: cst.CSTNode, calls: _Calls) -> tuple[bool | str | None, ...]:
    """The value of an expression, as the one element; empty where it is not a constant of the call."""
    if isinstance(node, cst.SimpleString):
        return (str(node.evaluated_value),)
    api = origins.names.api(node) if isinstance(node, cst.Name) else None
    if api in {"builtins.True", "builtins.False", "builtins.None"}:
        return ({"True": True, "False": False}.get(api.rpartition(".")[2]),)
    definitions = reaching(origins.index, node) if isinstance(node, cst.Name) else []
    if len(definitions) != 1 or definitions[0].path:
        return ()
    definition = definitions[0]
    function = definition.scope
    if definition.kind == "assign" and isinstance(definition.value, cst.Name | cst.SimpleString):
        return _constant(origins, definition.value, calls)
    if definition.kind != "param" or not isinstance(function, cst.FunctionDef) or calls[-1:] == ():
        return ()
    bound = origins.bind(calls[-1][1], function).get(definition.name) if calls[-1][0] is function else None
    return _constant(origins, bound, calls[:-1]) if bound is not None else ()
