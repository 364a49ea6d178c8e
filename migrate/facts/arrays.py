"""Arrays, whose lengths no deal of records to the workers changes."""

from __future__ import annotations

import re

import libcst as cst

from tfdp.migrate.catalogue import Kind
from tfdp.migrate.facts.datasets import Datasets
from tfdp.migrate.facts.flow import reaching
from tfdp.migrate.facts.index import ITER
from tfdp.migrate.facts.origins import Origins
from tfdp.migrate.facts.parts import nodes

_ARRAYS = re.compile(r"(numpy|keras\.datasets|pandas|sklearn|scipy|glob)\.|os\.listdir$")
_DEFINES = (cst.FunctionDef, cst.ClassDef, cst.Param, cst.Import, cst.ImportFrom)
_LIMIT = 400  # nodes of one value; real ones stay below a hundred


class Arrays:
    """Tells arrays from datasets, and from what datasets were read into."""

    def __init__(self, origins: Origins, datasets: Datasets) -> None:
        self._origins, self._datasets = origins, datasets

    def is_array(self, node: cst.CSTNode) -> bool:
        """Whether a value is certainly an array or a list of file names, and no dataset."""
        found = self._origins.of(node)
        return self._is_sliced(node) or (bool(found) and all(self._makes_array(o.node) for o in found))

    def _makes_array(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call):
            if _ARRAYS.match(self._origins.names.api(node.func) or ""):
                return True
            return isinstance(node.func, cst.Attribute) and self.is_array(node.func.value)
        if isinstance(node, cst.Subscript | cst.Attribute):
            return self.is_array(node.value)
        return isinstance(node, cst.BinaryOperation) and self.is_array(node.left)

    def _is_sliced(self, node: cst.CSTNode) -> bool:
        """Whether the name is one of the arrays that `from_tensor_slices` is given."""
        if not isinstance(node, cst.Name):
            return False
        index, definitions = self._origins.index, set(reaching(self._origins.index, node))
        calls = [
            c
            for c in index.calls
            if self._origins.names.api(c.func) == "tensorflow.data.Dataset.from_tensor_slices" and c.args
        ]
        given = [c.args[0].value for c in calls]
        given += [e.value for g in given if isinstance(g, cst.Tuple) for e in g.elements]
        return any(
            isinstance(g, cst.Name) and g.value == node.value and set(reaching(index, g)) == definitions for g in given
        )

    def independent(self, node: cst.CSTNode, described: bool = False) -> bool:
        """Whether no dataset, no element of an iteration and no list that may be filled has part in a value."""
        seen: dict[cst.CSTNode, None] = {}
        todo: list[cst.CSTNode] = [node]
        while todo:
            for each in nodes(todo.pop()):
                if each in seen:
                    continue
                seen[each] = None
                if len(seen) > _LIMIT or (isinstance(each, cst.List) and not each.elements):
                    return False
                if not isinstance(each, cst.Name | cst.Call | cst.Attribute):
                    continue
                if isinstance(each, cst.Call) and self._makes_dataset(each) and not described:
                    return False
                found = self._origins.of(each)
                described_here = described and all(o.path == (1,) for o in found)
                if any(ITER in o.path or isinstance(o.node, cst.AugAssign) for o in found):
                    return False
                if self._datasets.chains(each) and not described_here:
                    return False
                todo += [o.node for o in found if not isinstance(o.node, _DEFINES) and not described_here]
        return True

    def _makes_dataset(self, call: cst.Call) -> bool:
        api = self._origins.names.api(call.func) or ""
        data = api.startswith(("tensorflow.data.", "tensorflow_datasets."))
        return data or self._origins.kind(call.func) in {Kind.DATASET, Kind.BATCHED_DATASET}
