"""Everything that a value is computed from: expressions of the file, through names, functions, models and lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from tfdp.migrate.catalogue import Kind
from tfdp.migrate.facts.index import ITER
from tfdp.migrate.facts.origins import Origin, Origins

_MADE_ONCE = frozenset({"add_weight", "add_variable"})
_LATER = frozenset({"append", "extend", "add"})
_DEFINITIONS = (cst.ClassDef, cst.FunctionDef, cst.Import, cst.ImportFrom, cst.Param)


def backward(origins: Origins, roots: Iterable[cst.CSTNode]) -> frozenset[cst.CSTNode]:
    """All nodes from which the roots are computed.

    Initial values of variables do not belong to them, nor does what makes the data that a loop goes over.
    """
    seen: set[cst.CSTNode] = set()
    todo = list(roots)
    while todo:
        for node in _below(origins, todo.pop()):
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript):
                todo += [n for n in _made_of(origins, node) if n not in seen]
    return frozenset(seen)


def _below(origins: Origins, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    if isinstance(node, cst.Call) and _ends(origins, node):
        return
    for child in node.children:
        yield from _below(origins, child)


def _ends(origins: Origins, call: cst.Call) -> bool:
    if origins.kind(call.func) is Kind.VARIABLE or origins.names.api(call.func) == "builtins.next":
        return True
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _MADE_ONCE


def _made_of(origins: Origins, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for origin in origins.of(node):
        if origin.node is not node and ITER not in origin.path and not isinstance(origin.node, _DEFINITIONS):
            yield origin.node
    if isinstance(node, cst.Name):
        yield from _put_in_later(origins, node)
    if isinstance(node, cst.Call):
        yield from _of_own_object(origins, node)


def _put_in_later(origins: Origins, name: cst.Name) -> Iterator[cst.CSTNode]:
    """What is appended to a list, and what layers a model gets, under the same name."""
    index = origins.index
    for method in _LATER:
        for attribute in index.attributes.get(method, ()):
            call = index.parents.get(attribute)
            if isinstance(attribute.value, cst.Name) and attribute.value.value == name.value:
                yield from (a.value for a in (call.args if isinstance(call, cst.Call) else ()))


def _of_own_object(origins: Origins, call: cst.Call) -> Iterator[cst.CSTNode]:
    """What the call of an instance of the file's own class returns."""
    made = origins.of(call.func) if isinstance(call.func, cst.Name | cst.Attribute) else ()
    for owner in (_owner(origins, o) for o in made):
        for name in ("__call__", "call"):
            method = origins.method(owner, name) if owner is not None else None
            if method is not None:
                yield from (r.value for r in origins.index.returns[method] if r.value is not None)


def _owner(origins: Origins, origin: Origin) -> cst.ClassDef | None:
    return origins.constructed(origin.node) if not origin.path else None
