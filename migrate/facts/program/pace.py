"""What changes with the steps of training, and what only with its passes over the data."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import libcst as cst

from .flow import within
from .index import ITER
from .origins import Origin, Origins
from .pieces import nodes

_LIMIT = 400  # nodes of one value; real ones stay below a hundred
_COUNTERS = frozenset({"iterations", "global_step"})


class Pace:
    """Answers about places and values, given the loops of which each turn is a step.

    functions: those that Keras calls at each step.
    """

    def __init__(
        self, origins: Origins, loops: Iterable[cst.For | cst.While], functions: Collection[cst.CSTNode] = ()
    ) -> None:
        self._origins = origins
        self._loops, self._functions = frozenset(loops), frozenset(functions)

    def in_step(self, node: cst.CSTNode) -> bool:
        """Whether a place is reached at every step: in a loop of steps, or in a function called in one or by Keras."""
        return self._in_step(node, set())

    def _in_step(self, node: cst.CSTNode, seen: set[cst.FunctionDef]) -> bool:
        if any(loop in self._loops for loop in self._origins.index.loops_around(node)):
            return True
        if any(above in self._functions for above in self._origins.index.ancestors(node)):
            return True
        function = self._origins.index.enclosing_function(node)
        if function is None or function in seen:
            return False
        seen.add(function)
        return any(self._in_step(call, seen) for call in self._origins.calls_of(function))

    def counts_steps(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The part of a value that changes from step to step; None where there is none."""
        seen: set[Origin] = set()
        todo: list[cst.CSTNode] = [node]
        while todo:
            for each in nodes(todo.pop()):
                if self._is_counter(each):
                    return each
                if not isinstance(each, cst.Name | cst.Attribute | cst.Call):
                    continue
                for origin in self._origins.of(each):
                    if origin in seen or origin.node is each:
                        continue
                    seen.add(origin)
                    if self._advances(origin) or len(seen) > _LIMIT:
                        return each
                    if isinstance(origin.node, cst.BaseExpression | cst.AugAssign) and ITER not in origin.path:
                        todo.append(origin.node)
        return None

    def _is_counter(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Attribute):
            return node.attr.value in _COUNTERS
        return isinstance(node, cst.Call) and self._origins.names.api(node.func) == "tensorflow.Variable"

    def _advances(self, origin: Origin) -> bool:
        """Whether a value is another one at each step: the number of a turn, or computed from what it was before."""
        if ITER in origin.path and any(
            isinstance(loop, cst.For) and within(self._origins.index, origin.node, loop.iter) for loop in self._loops
        ):
            return True
        if isinstance(origin.node, cst.AugAssign):
            return self.in_step(origin.node)
        changing = isinstance(origin.node, cst.BinaryOperation | cst.Call) and self.in_step(origin.node)
        return changing and self._reads_itself(origin.node)

    def _reads_itself(self, node: cst.CSTNode) -> bool:
        """Whether a value is assigned to a name that it is computed from."""
        statement = self._origins.index.statement_of(node)
        if not isinstance(statement, cst.Assign):
            return False
        targets = [t for target in statement.targets for t in nodes(target.target)]
        return any(
            isinstance(read, cst.Name | cst.Attribute) and any(read.deep_equals(t) for t in targets)
            for read in nodes(statement.value)
        )
