"""What code of the script's own does, statement by statement, with the objects that it would meet.

Each statement is seen whichever way Python may take to it, and a name may hold whatever is put into it anywhere.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..reach import root
from . import vocabulary
from .attributes import attribute
from .bound import bound
from .expressions import Expressions
from .reads import is_framework
from .values import (
    ARRAY,
    DATA_ALONE,
    SCALARS,
    Arguments,
    Fixed,
    Held,
    Inner,
    Known,
    Made,
    RefusedError,
    Scope,
    Value,
    joined,
)

_PASSES = 12  # over a function, until nothing more is found


class Evaluator(Expressions):
    """Goes through functions; `reads` is told what is read. traces: of code that is traced, and not executed."""

    def __init__(self, reads: Any, *, traces: bool = False) -> None:
        super().__init__(reads)
        self.traces = traces
        self._scopes: dict[Any, Scope] = {}

    def run(self, function: Any, node: Any, parent: Scope | None, defaults: Any, arguments: Arguments) -> Value:
        """What a function gives that stands there in the syntax."""
        if isinstance(node, ast.FunctionDef) and any(
            isinstance(each, ast.Yield | ast.YieldFrom) for each in _own(node)
        ):
            raise RefusedError(f"calls {node.name}, which yields")
        key = id(node), id(function), parent, arguments.key
        if key not in self._scopes:  # what it makes is the same each time that it is called so
            self._scopes[key] = scope = Scope(function, parent, *_names(node))
            for name, value in bound(node.args, defaults, arguments).items():
                scope.put(name, value)
        scope = self._scopes[key]
        body = [ast.Return(node.body, lineno=node.lineno)] if isinstance(node, ast.Lambda) else node.body
        for _ in range(_PASSES):
            before = scope.measure()
            self._all(body, scope)
            if scope.measure() == before:
                return frozenset(scope.given or {Known(None)})
        raise RefusedError("is too involved to be followed")

    def defined(self, node: Any, scope: Scope) -> Any:
        """Defaults of a function that code defines."""
        args = node.args
        named = {a.arg: self.value(d, scope) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d}
        return [self.value(each, scope) for each in args.defaults], named

    def _all(self, body: Sequence[Any], scope: Scope) -> None:
        for each in body:
            try:
                self._statement(each, scope)
            except RefusedError as refused:
                code = scope.function.__code__
                raise refused.at(f"{os.path.basename(code.co_filename)}:{each.lineno}") from None

    def _statement(self, node: Any, scope: Scope) -> None:
        match node:
            case ast.Pass() | ast.Break() | ast.Continue():
                pass
            case ast.Expr(value):
                self.value(value, scope)
            case ast.Return(value):
                scope.given |= self.value(value, scope) if value is not None else {Known(None)}
            case ast.Assign(targets, value):
                found = self.value(value, scope)
                for each in targets:
                    self._put(each, found, scope)
            case ast.AnnAssign(target, _, value):
                if value is not None:
                    self._put(target, self.value(value, scope), scope)
            case ast.AugAssign(target, _, value):
                self._add_to(node, target, value, scope)
            case ast.FunctionDef(name, decorator_list=decorators):
                if decorators:
                    raise RefusedError(f"defines {name} with a decorator")
                self._require_plain(node.args)
                self.defined(node, scope)
                scope.put(name, {Inner(node, scope)})
            case ast.If() | ast.While() | ast.For():
                self._flow(node, scope)
            case _:
                self._rarer(node, scope)

    def _require_plain(self, parameters: ast.arguments) -> None:
        """Annotations call nothing."""
        said = [each.annotation for each in ast.walk(parameters) if isinstance(each, ast.arg) and each.annotation]
        if any(isinstance(inner, ast.Call) for each in said for inner in ast.walk(each)):
            raise RefusedError("calls something in an annotation")

    def _flow(self, node: Any, scope: Scope) -> None:
        match node:
            case ast.If(test, body, orelse):
                truth = self._truth(test, scope)
                self._all(body if truth is not False else (), scope)
                self._all(orelse if truth is not True else (), scope)
            case ast.While(test, body, orelse):
                self._truth(test, scope)
                self._all([*body, *orelse], scope)
            case ast.For(target, iterated, body, orelse):
                self._put(target, self.elements(self.value(iterated, scope)), scope)
                self._all([*body, *orelse], scope)

    def _rarer(self, node: Any, scope: Scope) -> None:
        match node:
            case ast.Assert(test, message):
                self._truth(test, scope)
                self._told([message] if message else [], scope)
            case ast.Raise(error, cause):
                self._told([each for each in (error, cause) if each], scope)
            case ast.With(items, body):
                for each in items:
                    self._context(each, scope)
                self._all(body, scope)
            case ast.Import(names):
                for name in names:
                    path = name.name if name.asname else root(name.name)
                    scope.put(name.asname or path, {Known(self._module(path))})
            case ast.ImportFrom(module, names) if module and not node.level:
                for name in names:
                    found = attribute(self.reads, Known(self._module(module)), name.name, self)
                    scope.put(name.asname or name.name, found)
            case ast.Delete(targets) if all(isinstance(each, ast.Name) for each in targets):
                pass
            case _:
                raise RefusedError(f"has a statement ({type(node).__name__.lower()}) that may do more")

    def _module(self, path: str) -> Any:
        if path not in sys.modules or not (is_framework(path) or path in ("math", "functools", "operator")):
            raise RefusedError(f"imports {path}")
        return sys.modules[path]

    def _context(self, item: ast.withitem, scope: Scope) -> None:
        call = item.context_expr
        name = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
        of = self.value(call.func.value, scope) if name else frozenset()  # type: ignore[attr-defined]
        frameworks = [each for each in of if isinstance(each, Known) and vocabulary.is_module(each.thing)]
        if name not in vocabulary.CONTEXTS or len(frameworks) != len(of):
            raise RefusedError("has a `with`, which may do more")
        assert isinstance(call, ast.Call)
        self._told([*call.args, *(each.value for each in call.keywords)], scope)
        if item.optional_vars is not None:
            self._put(item.optional_vars, DATA_ALONE, scope)

    def _told(self, nodes: Iterable[Any], scope: Scope) -> None:
        """Texts for whoever reads them."""
        self._telling += 1
        try:
            for each in nodes:
                self.value(each, scope)
        finally:
            self._telling -= 1

    def _put(self, target: Any, value: Value, scope: Scope) -> None:
        match target:
            case ast.Name(name):
                if name in scope.names:
                    scope.put(name, value)
                else:
                    raise RefusedError(f"changes {name}, which is not its own")
            case ast.Tuple(parts) | ast.List(parts):
                for part, each in zip(parts, self._taken_apart(value, parts, scope), strict=True):
                    self._put(part.value if isinstance(part, ast.Starred) else part, each, scope)
            case ast.Subscript(holder, index):
                self._keys(self.value(index, scope))
                for each in self.value(holder, scope):
                    if not isinstance(each, Made):
                        raise RefusedError("puts something into what it has not made itself")
                    each.elements |= value
            case ast.Attribute(_, name):
                raise RefusedError(f"sets an attribute ({name})")
            case _:
                raise RefusedError("sets what is not known")

    def _taken_apart(self, value: Value, parts: Sequence[Any], scope: Scope) -> list[Value]:
        fixed = [each for each in value if isinstance(each, Fixed)]
        starred = any(isinstance(each, ast.Starred) for each in parts)
        if fixed and len(fixed) == len(value) and not starred and all(len(f.items) == len(parts) for f in fixed):
            return [joined(each.items[index] for each in fixed) for index in range(len(parts))]
        found = self.elements(value)
        return [scope.container(each, found) if isinstance(each, ast.Starred) else found for each in parts]

    def _add_to(self, node: ast.AugAssign, target: Any, value: Any, scope: Scope) -> None:
        if isinstance(target, ast.Attribute):
            raise RefusedError(f"sets an attribute ({target.attr})")
        before = self.value(target, scope)
        for each in before:
            thing = each.thing if isinstance(each, Known) else None
            if (
                isinstance(each, Held)
                or each is ARRAY
                or not (isinstance(thing, (*SCALARS, tuple)) or vocabulary.is_unchanging(thing))
            ):
                raise RefusedError(f"adds to {ast.unparse(target)}, which it has not made itself")
        added = self.value(value, scope)
        for each in before:
            if isinstance(each, Made):
                each.elements |= self.elements(added)
        self._put(target, self._operated(node, [before, added], scope), scope)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, and not of those within."""
    for each in ast.iter_child_nodes(node):
        yield each
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from _own(each)


def _names(node: Any) -> tuple[frozenset[str], frozenset[str]]:
    """A function's own names; and which of them comprehensions have alone."""
    args = node.args
    given = [*args.posonlyargs, *args.args, *args.kwonlyargs, *([args.vararg] if args.vararg else [])]
    names = {each.arg for each in (*given, *([args.kwarg] if args.kwarg else []))}
    inside: set[str] = set()
    parts = list(_own(node))
    if any(isinstance(each, ast.Global | ast.Nonlocal) for each in parts):
        raise RefusedError("changes names that are not its own")
    comprehended = {
        id(name)
        for each in parts
        if isinstance(each, ast.comprehension)
        for name in ast.walk(each.target)
        if isinstance(name, ast.Name)
    }
    for each in parts:
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store | ast.Del):
            (inside if id(each) in comprehended else names).add(each.id)
        elif isinstance(each, ast.FunctionDef):
            names.add(each.name)
        elif isinstance(each, ast.alias):
            names.add(each.asname or root(each.name))
    return frozenset(names | inside), frozenset(inside - names)
