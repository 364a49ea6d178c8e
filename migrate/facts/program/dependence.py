"""Everything that a value is computed from: expressions of the file, through names, functions, models and lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ...catalogue import Kind
from ..apis import CALLED, MAKES_WEIGHT
from .flow import reaching
from .index import ITER, Definition
from .origins import Origins
from .pieces import DEFINES, nodes
from .spelling import method, receiver


def backward(origins: Origins, roots: Iterable[cst.CSTNode]) -> frozenset[cst.CSTNode]:
    """All nodes from which the roots are computed.

    Initial values of variables do not belong to them, nor does what makes the data that a loop goes over. A parameter
    takes its values from the calls that are among the nodes; where none is, from all.
    """
    found = _Values(origins)
    found.add(roots)
    while found.finish_parameters():
        pass
    return frozenset(found.seen)


class Slice:
    """What is come to from roots, through names and the parameters of the functions that are entered on the way.

    A subclass says which functions a call enters, and what of them and which bindings belong to the slice.
    """

    def __init__(self, origins: Origins) -> None:
        self._origins, self._index = origins, origins.index
        self.seen: set[cst.CSTNode] = set()
        self.entered: dict[cst.FunctionDef, list[cst.Call]] = {}
        self._wanted: dict[cst.FunctionDef, set[str]] = {}

    def add(self, roots: Iterable[cst.CSTNode]) -> None:
        """Add all that the roots lead to."""
        todo = list(roots)
        while todo:
            for node in self.below(todo.pop()):
                if node not in self.seen:
                    self.seen.add(node)
                    todo += self.further(node)

    def below(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The parts of a node that belong to the slice with it."""
        return nodes(node)

    def further(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What a node leads to."""
        if isinstance(node, cst.Name):
            for definition in reaching(self._index, node):
                function = definition.scope
                if definition.kind == "param" and isinstance(function, cst.FunctionDef):
                    self._wanted.setdefault(function, set()).add(definition.name)
                    yield from self._bound(self.callers(function), function, {definition.name})
                elif definition.value is not None and self.follows(definition):
                    yield definition.value

    def follows(self, definition: Definition) -> bool:
        """Whether what a name is bound to belongs to the slice."""
        return ITER not in definition.path and not isinstance(definition.value, DEFINES)

    def callers(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls that give a function's parameters their values."""
        return self.entered.get(function, [])

    def enter(self, call: cst.Call, function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
        """The arguments of a call for those parameters that are read."""
        self.entered.setdefault(function, []).append(call)
        yield from self._bound([call], function, self._wanted.get(function, set()))

    def _bound(self, calls: Iterable[cst.Call], function: cst.FunctionDef, names: set[str]) -> list[cst.CSTNode]:
        bound = [self._origins.bind(call, function) for call in calls]
        return [each[name] for each in bound for name in names if name in each]


class _Values(Slice):
    def __init__(self, origins: Origins) -> None:
        super().__init__(origins)
        self._finished: set[cst.FunctionDef] = set()

    def finish_parameters(self) -> bool:
        """Add what every call gives to functions that no call in the slice leads to; False where there are none."""
        open_ones = [f for f in self._wanted if f not in self.entered and f not in self._finished]
        for function in open_ones:
            self._finished.add(function)
            self.add(self._bound(self._origins.calls_of(function), function, self._wanted[function]))
        return bool(open_ones)

    def callers(self, function: cst.FunctionDef) -> list[cst.Call]:
        return self._origins.calls_of(function) if function in self._finished else super().callers(function)

    def below(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        todo = [node]
        while todo:
            yield (each := todo.pop())
            todo += () if isinstance(each, cst.Call) and self._ends(each) else reversed(each.children)

    def _ends(self, call: cst.Call) -> bool:
        made = self._origins.kind(call.func) is Kind.VARIABLE or method(call) in MAKES_WEIGHT
        return made or self._origins.called(call) == "builtins.next"

    def further(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        yield from super().further(node)
        if isinstance(node, cst.Name):
            yield from self._put_in_later(node)
        function = self._origins.function(node.func) if isinstance(node, cst.Call) else None
        if isinstance(node, cst.Call) and function is not None and function not in self._index.generators:
            yield from self._returned(node, function)
        elif isinstance(node, cst.Call | cst.Attribute | cst.Subscript):
            found = [o for o in self._origins.of(node) if o.node is not node and ITER not in o.path]
            yield from (o.node for o in found if not isinstance(o.node, DEFINES))
        for read in self._index.properties.get(node.attr.value, ()) if isinstance(node, cst.Attribute) else ():
            yield from self._index.given_back(read)
        if isinstance(node, cst.Call) and (held := self._origins.lambda_of(node.func)) is not None:
            yield held.body
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name | cst.Attribute):
            for owner in (self._origins.constructed(o.node) for o in self._origins.of(node.func) if not o.path):
                called = [self._origins.method(owner, name) for name in CALLED] if owner is not None else []
                for own in (f for f in called if f is not None):
                    yield from self._returned(node, own)

    def _returned(self, call: cst.Call, function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
        yield from self.enter(call, function)
        yield from self._index.given_back(function)

    def _put_in_later(self, name: cst.Name) -> Iterator[cst.CSTNode]:
        """What is appended to a list, and what layers a model gets, under the same name."""
        for call in self._index.methods("append", "extend", "add"):
            held = receiver(call)
            if isinstance(held, cst.Name) and held.value == name.value:
                yield from (a.value for a in call.args)
