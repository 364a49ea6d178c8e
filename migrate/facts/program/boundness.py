"""Whether a name certainly has a value where control comes to a place, so that a line written there may read it."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import libcst as cst

from .index import Index, Scope
from .origins import Origins
from .running import leading

_LEAVES = (cst.Return, cst.Raise, cst.Break, cst.Continue)


def certainly_bound(origins: Origins, name: str, place: cst.CSTNode, after: bool = False) -> bool:
    """Whether a name has a value just before a statement, or just after it, on every way that leads there."""
    index = origins.index
    own = index.scope_of(place)
    scope, found = index.lookup(name, own)
    if not found:
        return hasattr(builtins, name)
    if scope is own:
        return (after and _binds(index, name, scope, _line(index, place))) or _before(index, name, scope, place)
    function = index.enclosing_function(place)
    return function is not None and _when_called(origins, name, scope, function)


def _when_called(origins: Origins, name: str, scope: Scope, function: cst.FunctionDef) -> bool:
    """Whether the scope around a function has bound a name at each call that leads to the function from there."""
    index = origins.index
    calls = [c for c in leading(origins, origins.calls_of(function)) if index.scope_of(c) is scope]
    if calls:
        return all(_before(index, name, scope, c) for c in calls)
    return any(_binds(index, name, scope, line) for line in _lines(scope))  # called from elsewhere, once all has run


def _lines(scope: Scope) -> Sequence[cst.CSTNode]:
    body = scope.body if isinstance(scope, cst.Module) else getattr(scope.body, "body", ())
    return body if isinstance(body, list | tuple) else ()


def _line(index: Index, node: cst.CSTNode) -> cst.CSTNode:
    """The line, or the statement, that holds a node."""
    return node if isinstance(node, cst.SimpleStatementLine) else index.statement_of(node)


def _before(index: Index, name: str, scope: Scope, place: cst.CSTNode) -> bool:
    """Walk backwards through the bodies that hold a place, up to the scope."""
    node = _line(index, place)
    while node is not scope and (parent := index.parents.get(node)) is not None:
        body = getattr(parent, "body", None)
        earlier = list(body)[: list(body).index(node)] if isinstance(body, list | tuple) and node in body else []
        for statement in reversed(earlier):
            if _binds(index, name, scope, statement):
                return True
            if _deletes(statement, name):
                return False
        if isinstance(parent, cst.For | cst.With | cst.FunctionDef | cst.ExceptHandler) and node is parent.body:
            if _in_header(index, name, scope, parent):
                return True
        elif isinstance(parent, cst.Try) and node is parent.orelse and _binds(index, name, scope, parent.body):
            return True
        node = parent
    return False


def _in_header(index: Index, name: str, scope: Scope, statement: cst.CSTNode) -> bool:
    """Whether a loop, a `with`, a function or a handler binds the name for its own body."""
    kinds = {"param"} if isinstance(statement, cst.FunctionDef) else {"for", "with", "assign", "other"}
    return any(d.name == name and d.scope is scope and d.kind in kinds for d in index.bound.get(statement, ()))


def _binds(index: Index, name: str, scope: Scope, node: cst.CSTNode | None) -> bool:
    """Whether the name has a value wherever control goes on after a statement, or a body, because of it."""
    if isinstance(node, cst.SimpleStatementLine | cst.IndentedBlock | cst.SimpleStatementSuite):
        return any(_binds(index, name, scope, each) for each in node.body)
    if isinstance(node, cst.Else | cst.Finally | cst.ExceptHandler):
        return _settles(index, name, scope, node.body)
    if isinstance(node, cst.If):
        return node.orelse is not None and all(_settles(index, name, scope, n) for n in (node.body, node.orelse))
    if isinstance(node, cst.Try):
        if _binds(index, name, scope, node.finalbody):
            return True
        tried = _binds(index, name, scope, node.body) or _binds(index, name, scope, node.orelse)
        return tried and all(_settles(index, name, scope, h.body) for h in node.handlers)
    if isinstance(node, cst.With) and _binds(index, name, scope, node.body):
        return True
    if node is None or isinstance(node, cst.For | cst.While | cst.Match | cst.TryStar):
        return False
    here = (d for d in index.bound.get(node, ()) if d.name == name and d.scope is scope)
    return any(d.kind not in {"comp", "param"} for d in here)


def _settles(index: Index, name: str, scope: Scope, node: cst.CSTNode) -> bool:
    """Whether a branch binds the name, or leaves."""
    if isinstance(node, cst.Else):
        return _settles(index, name, scope, node.body)
    if isinstance(node, cst.If):
        return _binds(index, name, scope, node)
    return _binds(index, name, scope, node) or _leaves(node)


def _leaves(node: cst.CSTNode) -> bool:
    """Whether a branch ends by leaving what is around it."""
    last = node.body[-1] if isinstance(node, cst.IndentedBlock | cst.SimpleStatementSuite) and node.body else node
    last = last.body[-1] if isinstance(last, cst.SimpleStatementLine) and last.body else last
    return isinstance(last, _LEAVES)


def _deletes(node: cst.CSTNode, name: str) -> bool:
    """Whether a statement may take a name away."""
    if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda):
        return False
    if isinstance(node, cst.Del):
        targets = [node.target, *(e.value for e in getattr(node.target, "elements", ()))]
        return any(isinstance(t, cst.Name) and t.value == name for t in targets)
    return any(_deletes(child, name) for child in node.children)
