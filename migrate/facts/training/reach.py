"""Which calls run when a trained loss is computed: not those by which the same functions are used for testing."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ..program import Definition, Origins, reaching, within
from .loops import TrainingLoop

_CALLED_OBJECTS = ("__call__", "call")


def reached(origins: Origins, loops: Iterable[TrainingLoop]) -> frozenset[cst.Call]:
    """The calls that give the losses of the loops' gradients, and those that lead from the loops to them."""
    walk = _Walk(origins, tuple(loops))
    walk.run()
    return frozenset(walk.calls)


class _Walk:
    def __init__(self, origins: Origins, loops: tuple[TrainingLoop, ...]) -> None:
        self._origins, self._loops = origins, loops
        self.calls: set[cst.Call] = {c for loop in loops for c in loop.calls if isinstance(c, cst.Call)}
        self._functions: set[cst.FunctionDef] = set()
        self._params: set[Definition] = set()
        self._seen: set[cst.CSTNode | Definition] = set()

    def run(self) -> None:
        for loop in self._loops:
            ways = [self._origins.index.enclosing_function(c) for c in loop.calls]
            self._functions.update(f for f in ways if f is not None)
        for loop in self._loops:
            for value in loop.gradient.made_of:
                self._visit(value)
        known = -1
        while known != len(self.calls):  # a call that is found later may pass another value for a parameter
            known = len(self.calls)
            for param in tuple(self._params):
                self._passed(param)

    def _visit(self, node: cst.CSTNode) -> None:
        todo = [node]
        while todo:
            each = todo.pop()
            if each in self._seen:
                continue
            self._seen.add(each)
            todo += each.children
            if isinstance(each, cst.Call):
                self.calls.add(each)
                todo += self._bodies(each)
            elif isinstance(each, cst.Name):
                todo += [value for d in reaching(self._origins.index, each) for value in self._bound(d)]

    def _bodies(self, call: cst.Call) -> list[cst.CSTNode]:
        """What a call of the file's own functions, objects and classes runs."""
        functions = [self._origins.function(call.func)]
        owner, made = self._origins.class_of(call.func), self._origins.constructed(call)
        functions += [self._origins.method(owner, name) for name in _CALLED_OBJECTS] if owner is not None else []
        functions += [self._origins.method(made, "__init__")] if made is not None else []
        found = [f for f in functions if f is not None]
        self._functions.update(found)
        return [f.body for f in found]

    def _bound(self, definition: Definition) -> list[cst.CSTNode]:
        """What binds a name while a step runs: values from before the loop are the same for all steps."""
        if definition in self._seen:
            return []
        self._seen.add(definition)
        if definition.kind == "param":
            self._params.add(definition)
            return []
        if definition.kind in {"def", "class", "import"} or not self._runs(definition):
            return []
        return [definition.value or definition.statement]

    def _runs(self, definition: Definition) -> bool:
        if definition.kind == "for" and any(definition.statement is loop.loop for loop in self._loops):
            return False  # the batches themselves
        function = self._origins.index.enclosing_function(definition.statement)
        inside = any(within(self._origins.index, definition.statement, loop.loop) for loop in self._loops)
        return inside or (function in self._functions and not self._holds_loop(function))

    def _holds_loop(self, function: cst.FunctionDef | None) -> bool:
        return function is not None and any(within(self._origins.index, loop.loop, function) for loop in self._loops)

    def _passed(self, param: Definition) -> None:
        function = param.scope
        if not isinstance(function, cst.FunctionDef):
            return
        calls = [c for c in self._origins.calls_of(function) if c in self.calls]
        for value in [self._origins.bind(c, function).get(param.name) for c in calls]:
            if value is not None:
                self._visit(value)
