"""What a called expression may stand for: also one of a list or a table of functions or layers."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ..program import ITER, Origins, method, receiver


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
        else:
            found.append(node)
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
