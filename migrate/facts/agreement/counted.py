"""Tests that ask for a number of steps, which is another one with more workers."""

from __future__ import annotations

import libcst as cst

from ..program import Origins, nodes, within
from ..sameness import Sameness
from ..training import TrainingLoop


class Counted:
    """Finds counters that training loops count up, in conditions."""

    def __init__(self, origins: Origins, sameness: Sameness) -> None:
        self._origins, self._sameness = origins, sameness

    def asks(self, test: cst.CSTNode, loop: TrainingLoop) -> bool:
        """Whether a test asks for a number of steps, which is another one with more workers."""
        skipped = {
            n
            for d in nodes(test)
            if isinstance(d, cst.BinaryOperation) and isinstance(d.operator, cst.Divide)
            for n in nodes(d.right)
        }
        for node in nodes(test):
            if isinstance(node, cst.Attribute) and self._counts(node, loop):
                return True
            if not isinstance(node, cst.Name) or node in skipped:
                continue
            _, definitions = self._origins.index.lookup(node.value, self._origins.index.scope_of(node))
            for d in definitions:
                stepped = within(self._origins.index, d.statement, loop.loop) or self._in_step(d.statement, loop)
                if stepped and isinstance(d.value, cst.AugAssign) and not self._sameness.of(d.value.value):
                    return True
                if d.kind == "for" and d.statement is loop.loop and (loop.taken or d.path[1:2] == (0,)):
                    return True
        return False

    def _counts(self, node: cst.Attribute, loop: TrainingLoop) -> bool:
        if node.attr.value == "iterations":
            return True
        stores = self._origins.index.attribute_stores.get(node.attr.value, ())
        return any(
            isinstance(value, cst.AugAssign)
            and (within(self._origins.index, value, loop.loop) or self._in_step(value, loop))
            and not self._sameness.of(value.value)
            for _, value, _ in stores
        )

    def _in_step(self, node: cst.CSTNode, loop: TrainingLoop) -> bool:
        """Whether the node is in a function that the training loop calls."""
        function = self._origins.index.enclosing_function(node)
        return function is not None and any(
            within(self._origins.index, c, loop.loop.body) for c in self._origins.calls_of(function)
        )
