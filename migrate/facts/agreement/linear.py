"""Values that are linear in means over a batch: their average over ranks is the value over all examples."""

from __future__ import annotations

import libcst as cst

from ..losses import Losses, Reduction
from ..program import Definition, Origins, reaching
from ..sameness import Mark, Sameness

_SAME = frozenset(
    {
        *("builtins.float", "builtins.sum", "builtins.list", "numpy.mean", "numpy.sum", "numpy.average", "numpy.array"),
        *("numpy.asarray", "numpy.float32", "numpy.float64", "tensorflow.reduce_mean", "tensorflow.reduce_sum"),
        *("tensorflow.cast", "tensorflow.identity", "tensorflow.convert_to_tensor", "tensorflow.stack"),
        *("statistics.mean", "statistics.fmean", "tensorflow.constant", "tensorflow.add_n"),
    }
)
_METHODS = frozenset({"numpy", "item", "mean", "sum", "copy"})
_DEPTH = 25


class Linear:
    """Asks whether a value is a sum of batch means, each times a number that is equal on all ranks."""

    def __init__(self, origins: Origins, sameness: Sameness) -> None:
        self._origins, self._sameness = origins, sameness
        self._losses = Losses(origins)
        self._assumed: set[Definition] = set()

    def of(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether the value is linear in means over batches of equal size on all ranks."""
        if depth == 0:
            self._assumed = set()
        if depth > _DEPTH:
            return False
        if not self._sameness.of(node) & {Mark.LOCAL, Mark.UNKNOWN}:
            return True
        if isinstance(node, cst.BinaryOperation):
            return self._operation(node, depth)
        if isinstance(node, cst.UnaryOperation):
            return isinstance(node.operator, cst.Minus) and self.of(node.expression, depth + 1)
        if isinstance(node, cst.Name):
            definitions = reaching(self._origins.index, node)
            return (
                bool(definitions) and all(self._definition(d, depth) for d in definitions) and self._added(node, depth)
            )
        if isinstance(node, cst.List | cst.Tuple):
            return all(self.of(e.value, depth + 1) for e in node.elements)
        if isinstance(node, cst.ListComp | cst.GeneratorExp):
            return node.for_in.ifs == () and self.of(node.elt, depth + 1)
        if isinstance(node, cst.Subscript):
            return self.of(node.value, depth + 1) and not any(self._sameness.of(s) for s in node.slice)
        return isinstance(node, cst.Call) and self._call(node, depth)

    def is_mean(self, node: cst.CSTNode) -> bool:
        """Whether the value comes straight from a loss, a training step: where it is made is no place to average it."""
        return isinstance(node, cst.Call) and self._mean(node, ())

    def _operation(self, node: cst.BinaryOperation, depth: int) -> bool:
        left, right = self.of(node.left, depth + 1), self.of(node.right, depth + 1)
        if isinstance(node.operator, cst.Add | cst.Subtract):
            return left and right
        if isinstance(node.operator, cst.Multiply):
            factors = [not self._sameness.of(n) for n in (node.left, node.right)]
            return left and right and any(factors)
        return isinstance(node.operator, cst.Divide) and left and not self._sameness.of(node.right)

    def _definition(self, definition: Definition, depth: int) -> bool:
        """Whether a binding is linear; assumed of one that was asked for: where it is not, the whole answer is no."""
        if definition in self._assumed:
            return True
        self._assumed.add(definition)
        value = definition.value
        if definition.kind in {"comp", "for"}:
            return value is not None and Mark.LOCAL in self._sameness.of(value) and self.of(value, depth + 1)
        if isinstance(value, cst.AugAssign):
            grows = isinstance(value.operator, cst.AddAssign | cst.SubtractAssign)
            scales = isinstance(value.operator, cst.DivideAssign | cst.MultiplyAssign)
            earlier = self._origins.index.probe(definition.name, value)
            part = self.of(value.value, depth + 1) if grows else scales and not self._sameness.of(value.value)
            return part and all(self._definition(d, depth + 1) for d in reaching(self._origins.index, earlier))
        if value is None or definition.kind != "assign":
            return False
        path = definition.path
        while path and isinstance(value, cst.Tuple | cst.List) and 0 <= path[0] < len(value.elements):
            value, path = value.elements[path[0]].value, path[1:]
        if path:
            return self._mean(value, path) or self._returned(value, path, depth)
        return self.of(value, depth + 1)

    def _added(self, node: cst.Name, depth: int) -> bool:
        """Whether what is appended to a list is linear, too."""
        index = self._origins.index
        for use in index.names[node.value]:
            holder = index.parents.get(use)
            call = index.parents.get(holder) if isinstance(holder, cst.Attribute) and holder.value is use else None
            if isinstance(holder, cst.Subscript) and holder in index.subscript_stores:
                return False
            if isinstance(call, cst.Call) and isinstance(holder, cst.Attribute) and call.func is holder:
                if holder.attr.value in {"append", "appendleft"} and not all(
                    self.of(a.value, depth + 1) for a in call.args
                ):
                    return False
                if holder.attr.value in {"extend", "insert", "update"}:
                    return False
        return True

    def _call(self, node: cst.Call, depth: int) -> bool:
        if self._mean(node, ()):
            return True
        api = self._origins.names.api(node.func)
        if api is not None:
            others = node.args[1:]  # weights of a mean: a product of two values of the batch is not linear
            same = bool(node.args) and not any(a.star or self._sameness.of(a.value) for a in others)
            return api in _SAME and same and self.of(node.args[0].value, depth + 1)
        if self._origins.function(node.func) is not None:
            return self._returned(node, (), depth)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS and not node.args:
            return self.of(node.func.value, depth + 1)
        return False

    def _returned(self, call: cst.CSTNode, path: tuple[int, ...], depth: int) -> bool:
        """Whether all that a function of the file returns is linear, as the mean loss of an epoch is."""
        function = self._origins.function(call.func) if isinstance(call, cst.Call) else None
        if function is None or function in self._origins.index.generators:
            return False
        values: list[cst.CSTNode | None] = [r.value for r in self._origins.index.returns[function]]
        for step in path:
            values = [
                v.elements[step].value if isinstance(v, cst.Tuple | cst.List) and 0 <= step < len(v.elements) else None
                for v in values
            ]
        return bool(values) and all(v is not None and self.of(v, depth + 1) for v in values)

    def _mean(self, value: cst.CSTNode, path: tuple[int, ...]) -> bool:
        """Whether what a training step gives back is a mean over its batch."""
        found = self._origins.of(value, path)
        return bool(found) and all(
            not o.path and self._losses.reduction(self._plain(o.node)) is Reduction.MEAN for o in found
        )

    def _plain(self, node: cst.CSTNode) -> cst.CSTNode:
        """The tensor in `float(loss)` and `loss.numpy()`."""
        while isinstance(node, cst.Call):
            if self._origins.names.api(node.func) == "builtins.float" and node.args:
                node = node.args[0].value
            elif isinstance(node.func, cst.Attribute) and node.func.attr.value in {"numpy", "item"}:
                node = node.func.value
            else:
                break
        return node
