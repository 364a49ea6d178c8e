"""What a called expression may stand for: also one of a list or a table of functions or layers."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ..program import ITER, Definition, Origins, method, params_of, receiver


def callees(origins: Origins, func: cst.BaseExpression) -> list[cst.CSTNode]:
    """All that is called; `func` itself stands for what is not known."""
    found: list[cst.CSTNode] = []
    for origin in origins.of(func):
        node = origin.node
        if origin.path[:1] == (ITER,):
            found += _held(origins, node, None) or [func]
        elif origin.path:
            found.append(func)
        elif isinstance(node, cst.Subscript):
            first = node.slice[0].slice
            key = first.value if isinstance(first, cst.Index) and len(node.slice) == 1 else None
            found += _held(origins, node.value, key) or [func]
        elif method(node) == "get" and isinstance(node, cst.Call) and node.args:
            found += _held(origins, receiver(node), node.args[0].value) or [func]
        elif isinstance(node, cst.Param):
            found += _decorated(origins, node) or [node]
        else:
            found.append(node)
    return found


def _decorated(origins: Origins, param: cst.Param) -> list[cst.CSTNode]:
    """The functions that a parameter of a decorator of this file stands for."""
    by = origins.index.enclosing_function(param)
    return [f for f in origins.index.functions if by is not None and by in _decorators(origins, f)]


def _decorators(origins: Origins, function: cst.FunctionDef) -> list[cst.FunctionDef]:
    found = (origins.function(d.decorator) for d in function.decorators)
    return [f for f in found if f is not None]


def wrappers(origins: Origins, function: cst.FunctionDef) -> list[cst.FunctionDef]:
    """The functions that decorators of this file put in the place of one."""
    given = (r for decorator in _decorators(origins, function) for r in origins.index.returned(decorator))
    made = (origins.made(r) for r in given)
    return [m for m in made if isinstance(m, cst.FunctionDef) and m is not function]


def starred(origins: Origins, definition: Definition) -> list[tuple[cst.BaseExpression, int]]:
    """The values that calls pass by a star, with the place of a parameter in them; none where another call does not."""
    function, found = definition.scope, list[tuple[cst.BaseExpression, int]]()
    if not isinstance(function, cst.FunctionDef):
        return []
    params = [p.name.value for p in params_of(function)[origins.takes_self(function) :]]
    for call in origins.calls_of(function) if definition.name in params else ():
        before = next((i for i, a in enumerate(call.args) if a.star == "*"), None)
        place = params.index(definition.name)
        if before is None or before > place:
            return []
        found.append((call.args[before].value, place - before))
    return found


def _held(origins: Origins, container: cst.CSTNode, key: cst.BaseExpression | None) -> list[cst.CSTNode]:
    """What a list or a table that is written out holds, or has under a key; nothing where that is not known."""
    held = origins.made(container)
    later = [v for t, v in origins.index.subscript_stores.items() if t.value.deep_equals(container)]
    if isinstance(held, cst.ListComp):
        return [origins.made(held.elt)]
    if isinstance(held, cst.List | cst.Tuple):
        return _made(origins, [*(e.value for e in held.elements), *later])
    if not isinstance(held, cst.Dict):
        return []
    entries = [e for e in held.elements if isinstance(e, cst.DictElement)]
    if len(entries) < len(held.elements):
        return []
    known = isinstance(key, cst.SimpleString) and all(isinstance(e.key, cst.SimpleString) for e in entries)
    if known and not later:
        entries = [e for e in entries if _text(e.key) == _text(key)]
    return _made(origins, [*(e.value for e in entries), *later])


def _made(origins: Origins, values: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    return [origins.made(value) for value in values]


def _text(node: cst.BaseExpression | None) -> object:
    return node.evaluated_value if isinstance(node, cst.SimpleString) else None
