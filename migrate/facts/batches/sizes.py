"""Expressions that stand for the size of the training batch."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property

import libcst as cst

from ..apis import SAME_COUNT
from ..data import Chain
from ..program import Origin, Origins, argument, within_itself


class BatchSizes:
    """Recognises the constant, argument or configuration entry from which the training batches are made.

    What makes batches in chains is given, and what else is `given`.
    """

    def __init__(self, origins: Origins, chains: Iterable[Chain], given: Iterable[cst.BaseExpression] = ()) -> None:
        self._origins = origins
        sizes = (*dict.fromkeys(_given_in(chains)), *given)
        self.given = (*sizes, *(whole for size in sizes for whole in self._wholes(size)))

    def _wholes(self, size: cst.BaseExpression) -> Iterable[cst.BaseExpression]:
        """The size of which another is a part: `batch_size` where batches are made from `int(batch_size / 2)`."""
        for origin in self._origins.of(size):
            node: cst.CSTNode = origin.node
            if isinstance(node, cst.Call) and self._origins.called(node) in SAME_COUNT and node.args:
                node = node.args[0].value
            if not origin.path and is_part(node):
                yield cst.ensure_type(node, cst.BinaryOperation).left

    @cached_property
    def _keys(self) -> frozenset[Hashable]:
        return frozenset(k for size in self.given for k in self.keys(size))

    @cached_property
    def literals(self) -> frozenset[float]:
        """The sizes, where they are written out in this file."""
        nodes = [o.node for size in self.given for o in self._origins.of(size) if not o.path]
        return frozenset(float(n.evaluated_value) for n in nodes if isinstance(n, cst.Integer))

    @within_itself(frozenset())
    def keys(self, node: cst.CSTNode) -> frozenset[Hashable]:
        """What can give the value: equal keys stand for one value, wherever they are read."""
        return frozenset(map(self._key, self._origins.of(node)))

    def _key(self, origin: Origin) -> Hashable:
        node = origin.node
        if origin.path:
            return node, origin.path
        if isinstance(node, cst.Attribute):
            return "attribute", node.attr.value, self.keys(node.value)
        if isinstance(node, cst.Subscript) and len(node.slice) == 1:
            index = node.slice[0].slice
            if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
                return "entry", index.value.evaluated_value, self.keys(node.value)
        if isinstance(node, cst.Call) and self._origins.called(node) in SAME_COUNT and node.args:
            found = self.keys(node.args[0].value)
            return next(iter(found)) if len(found) == 1 else (node, ())
        return node, ()

    def defines(self, node: cst.CSTNode) -> bool:
        """Whether the node, not a name but what gives it its value, is what the batches are made with."""
        if not self.given or not isinstance(node, cst.Integer | cst.Attribute | cst.Subscript | cst.Call):
            return False
        in_place = node in self.given  # `.batch(32)`: a number of its own, that nothing else reads
        return self._key(Origin(node)) in self._keys and not in_place

    def may_stand(self, node: cst.CSTNode) -> bool:
        """Whether the expression is the size on some ways through the file."""
        return bool(self.keys(node) & self._keys)


def _given_in(chains: Iterable[Chain]) -> Iterator[cst.BaseExpression]:
    for chain in chains:
        found = [argument(call, "batch_size", 0) for call in chain.batches]
        if chain.batched_source:
            found.append(argument(chain.source, "batch_size"))
        yield from (a.value for a in found if a is not None)


def is_part(node: cst.CSTNode) -> bool:
    """Whether a node is a name by a number: `batch_size // 2`."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Divide | cst.FloorDivide):
        return False
    return isinstance(node.right, cst.Integer) and isinstance(node.left, cst.Name | cst.Attribute)
