"""Arrays, whose lengths no sharding of records to the workers changes."""

from __future__ import annotations

import libcst as cst

from ...catalogue import Kind
from ..apis import ARRAYS
from ..program import (
    DEFINES,
    ITER,
    Listed,
    Origin,
    Origins,
    method,
    nodes,
    parts,
    reaching,
    receiver,
    within_itself,
)
from .datasets import Datasets

_PLAIN = (cst.SimpleString, cst.Integer, cst.Float)
_LIMIT = 4000  # nodes of one value and of what it is made of; real ones stay below a thousand


class Arrays:
    """Tells arrays from datasets, and from what datasets were read into."""

    def __init__(self, origins: Origins, datasets: Datasets) -> None:
        self._origins, self._datasets, self._lists = origins, datasets, Listed(origins)

    @within_itself(True)
    def is_array(self, node: cst.CSTNode) -> bool:
        """Whether a value is certainly an array or a list of file names, and no dataset.

        `x = x.reshape(…)` is what `x` was before.
        """
        found = self._origins.of(node)
        return self._is_sliced(node) or (bool(found) and all(self._makes_array(o.node) for o in found))

    def _makes_array(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.ListComp):
            return not self._makes_dataset_of(node.elt)
        if isinstance(node, cst.List):
            return True
        if isinstance(node, cst.Call):
            if ARRAYS.match(self._origins.called(node)):
                return True
            return bool(method(node)) and self.is_array(receiver(node))
        if isinstance(node, cst.Subscript):
            return self.is_array(node.value) and self._is_part_of_array(node)
        if isinstance(node, cst.Attribute):
            return self.is_array(node.value)
        return isinstance(node, cst.BinaryOperation) and self.is_array(node.left)

    def _is_part_of_array(self, node: cst.Subscript) -> bool:
        """What a list is asked for by number may be a dataset that was put into it."""
        if any(isinstance(part.slice, cst.Slice) for part in node.slice):
            return True
        found = [o.node for o in self._origins.of(node.value) if not o.path]
        lists = (n for n in found if isinstance(n, cst.List))
        kept = [[e.value for e in made.elements] or self._lists.put_in(made) for made in lists]
        return all(k is not None and all(isinstance(n, _PLAIN) or self.is_array(n) for n in k) for k in kept)

    def _is_sliced(self, node: cst.CSTNode) -> bool:
        """Whether the name is one of the arrays that `from_tensor_slices` is given."""
        if not isinstance(node, cst.Name):
            return False
        index, calls = self._origins.index, self._origins.calls_to("tensorflow.data.Dataset.from_tensor_slices")
        given = [c.args[0].value for c in calls if c.args]
        given += [e.value for g in given if isinstance(g, cst.Tuple) for e in g.elements]
        same = [g for g in given if isinstance(g, cst.Name) and g.value == node.value]
        return any(set(reaching(index, g)) == set(reaching(index, node)) for g in same)

    def independent(self, node: cst.CSTNode, described: bool = False) -> bool:
        """Whether no dataset has part in a value, nor an element of an iteration or a list that may be filled, unless
        that is certain to be the same whatever the workers do."""
        seen: dict[cst.CSTNode, None] = {}
        todo: list[cst.CSTNode] = [node]
        while todo:
            for each in nodes(todo.pop()):
                if each in seen:
                    continue
                seen[each] = None
                if len(seen) > _LIMIT:
                    return False
                if isinstance(each, cst.List) and not each.elements:
                    if (put_in := self._lists.put_in(each)) is None:
                        return False
                    todo += put_in
                if not isinstance(each, cst.Name | cst.Call | cst.Attribute):
                    continue
                if isinstance(each, cst.Call) and self._makes_dataset(each) and not described:
                    return False
                found = self._origins.of(each)
                described_here = described and all(o.path == (1,) for o in found)
                if not all(self._is_settled(o) for o in found):
                    return False
                if self._datasets.chains(each) and not described_here:
                    return False
                todo += [o.node for o in found if not isinstance(o.node, DEFINES) and not described_here]
        return True

    def _is_settled(self, origin: Origin) -> bool:
        """Whether an element is one of a list, and what is added to is so in loops over lists."""
        if isinstance(origin.node, cst.AugAssign):
            return self._lists.turns(origin.node) is not None
        return ITER not in origin.path or self._lists.is_listed(origin.node)

    def _makes_dataset_of(self, node: cst.BaseExpression) -> bool:
        """Whether an element of a comprehension is a dataset, or is made with one."""
        return bool(self._datasets.chains(node)) or any(
            isinstance(n, cst.Call) and self._makes_dataset(n) for n in parts(self._origins, node)
        )

    def _makes_dataset(self, call: cst.Call) -> bool:
        data = self._origins.called(call).startswith(("tensorflow.data.", "tensorflow_datasets."))
        return data or self._origins.kind(call.func) in {Kind.DATASET, Kind.BATCHED_DATASET}
