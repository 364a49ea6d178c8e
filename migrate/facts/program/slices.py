"""Everything that a value is computed from: expressions of the file, through names, functions, models and lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ...catalogue import Kind
from ..apis import MAKES_WEIGHT
from .flow import reaching
from .index import ITER
from .origins import Origin, Origins
from .spelling import method, receiver

_LATER = frozenset({"append", "extend", "add"})
_DEFINITIONS = (cst.ClassDef, cst.FunctionDef, cst.Import, cst.ImportFrom, cst.Param)


def backward(origins: Origins, roots: Iterable[cst.CSTNode]) -> frozenset[cst.CSTNode]:
    """All nodes from which the roots are computed.

    Initial values of variables do not belong to them, nor does what makes the data that a loop goes over. A parameter
    takes its values from the calls that are among the nodes; where none is, from all.
    """
    found = _Slice(origins)
    found.add(roots)
    while found.finish_parameters():
        pass
    return frozenset(found.seen)


class _Slice:
    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self.seen: set[cst.CSTNode] = set()
        self._calls: dict[cst.FunctionDef, list[cst.Call]] = {}
        self._wanted: dict[cst.FunctionDef, set[str]] = {}
        self._finished: set[cst.FunctionDef] = set()

    def add(self, roots: Iterable[cst.CSTNode]) -> None:
        todo = list(roots)
        while todo:
            for node in _below(self._origins, todo.pop()):
                if node in self.seen:
                    continue
                self.seen.add(node)
                if isinstance(node, cst.Name):
                    todo += [*self._name(node), *_put_in_later(self._origins, node)]
                elif isinstance(node, cst.Call):
                    todo += [*self._call(node), *self._own_object(node)]
                elif isinstance(node, cst.Attribute | cst.Subscript):
                    todo += self._followed(node)

    def finish_parameters(self) -> bool:
        """Add what every call gives to functions that no call in the slice leads to; False where there are none."""
        entered = [f for f in self._wanted if f not in self._calls and f not in self._finished]
        for function in entered:
            self._finished.add(function)
            for call in self._origins.calls_of(function):
                self.add(self._bound(call, function, self._wanted[function]))
        return bool(entered)

    def _name(self, name: cst.Name) -> Iterator[cst.CSTNode]:
        for definition in reaching(self._origins.index, name):
            function = definition.scope
            if definition.kind == "param" and isinstance(function, cst.FunctionDef):
                self._wanted.setdefault(function, set()).add(definition.name)
                sources = self._origins.calls_of(function) if function in self._finished else self._calls.get(function)
                for call in sources or ():
                    yield from self._bound(call, function, {definition.name})
            elif definition.value is not None and ITER not in definition.path:
                yield from [definition.value] if not isinstance(definition.value, _DEFINITIONS) else []

    def _call(self, call: cst.Call) -> Iterator[cst.CSTNode]:
        function = self._origins.function(call.func)
        if function is None or function in self._origins.index.generators:
            yield from self._followed(call)
            return
        yield from self._enter(call, function)

    def _own_object(self, call: cst.Call) -> Iterator[cst.CSTNode]:
        """What the call of an instance of the file's own class returns."""
        made = self._origins.of(call.func) if isinstance(call.func, cst.Name | cst.Attribute) else ()
        for owner in (_owner(self._origins, o) for o in made):
            for name in ("__call__", "call"):
                if owner is not None and (method := self._origins.method(owner, name)) is not None:
                    yield from self._enter(call, method)

    def _enter(self, call: cst.Call, function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
        self._calls.setdefault(function, []).append(call)
        yield from self._bound(call, function, self._wanted.get(function, set()))
        yield from self._origins.index.returned(function)

    def _bound(self, call: cst.Call, function: cst.FunctionDef, names: set[str]) -> list[cst.CSTNode]:
        bound = self._origins.bind(call, function)
        return [bound[n] for n in names if n in bound]

    def _followed(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        for origin in self._origins.of(node):
            if origin.node is not node and ITER not in origin.path and not isinstance(origin.node, _DEFINITIONS):
                yield origin.node


def _below(origins: Origins, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    todo = [node]
    while todo:
        yield (each := todo.pop())
        todo += () if isinstance(each, cst.Call) and _ends(origins, each) else reversed(each.children)


def _ends(origins: Origins, call: cst.Call) -> bool:
    if origins.kind(call.func) is Kind.VARIABLE or origins.names.api(call.func) == "builtins.next":
        return True
    return method(call) in MAKES_WEIGHT


def _put_in_later(origins: Origins, name: cst.Name) -> Iterator[cst.CSTNode]:
    """What is appended to a list, and what layers a model gets, under the same name."""
    for call in origins.index.methods(*_LATER):
        held = receiver(call)
        if isinstance(held, cst.Name) and held.value == name.value:
            yield from (a.value for a in call.args)


def _owner(origins: Origins, origin: Origin) -> cst.ClassDef | None:
    return origins.constructed(origin.node) if not origin.path else None
