"""Calls of functions of raw variables that a loss is computed from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..program import argument, backward, entered, is_network, nodes, reaching, within_itself
from ..training_file import TrainingFile
from .trains import TrainingCalls

_REDUCES = frozenset({Kind.MEAN, Kind.SUM, Kind.REGULARIZER})
_PRODUCTS = re.compile(r"tensorflow\.(matmul|linalg\.mat(mul|vec)|nn\.(conv\dd|convolution))$")
Body = cst.FunctionDef | cst.Lambda


class RowFunctions:
    """Finds them; whether each row of their results comes from its own row is seen when they run."""

    def __init__(self, script: TrainingFile, training: TrainingCalls) -> None:
        self._script, self._origins, self._index = script, script.origins, script.index
        self._training = training

    @cached_property
    def _read(self) -> frozenset[cst.CSTNode]:
        """All that losses are computed from."""
        return backward(self._origins, [value for g in self._script.gradients if not g.fed for value in g.made_of])

    @cached_property
    def calls(self) -> tuple[cst.Call, ...]:
        """The calls, in the order of the text: where neither they, nor models, nor products are seen, those that may be
        some."""
        called = [c for c in self._index.calls if c in self._read]
        found = [c for c in called if self._is_one(c)]
        if not (found or self._training.of_models or self.products):
            found = [c for c in called if self._may_be_one(c)]
        return tuple(found)

    @cached_property
    def products(self) -> tuple[cst.BinaryOperation | cst.Call, ...]:
        """`x @ w`, `tf.matmul(x, w)` and convolutions by variables, in what a loss is computed from."""
        return tuple(n for n in self._index.order if n in self._read and self._is_product(n))  # type: ignore[misc]

    def _is_product(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.BinaryOperation):
            return isinstance(node.operator, cst.MatrixMultiply) and self._reads(nodes(node.right))
        given = node.args if isinstance(node, cst.Call) and _PRODUCTS.match(self._origins.called(node)) else ()
        return any(self._reads(nodes(a.value)) for a in given)

    def _is_one(self, call: cst.Call) -> bool:
        """Whether a call runs a function of the file that reads variables, or is given some, and comes to no Keras
        layer."""
        function = self._function(call)
        if function is None:
            return False
        inside = [n for part in entered(self._origins, [function]) for n in nodes(part)]
        given = (n for a in call.args for n in nodes(a.value))
        return self._training.of_models.isdisjoint(inside) and (self._reads(inside) or self._reads(given))

    def _may_be_one(self, call: cst.Call) -> bool:
        """Whether a call gives a function of the file rows, and what may be variables, or be computed of them."""
        return len(call.args) > 1 and self._function(call) is not None

    def _function(self, call: cst.Call) -> Body | None:
        """The function of the file that a call runs, if that may have rows to give."""
        if not call.args or any(a.star for a in call.args) or self._origins.called(call):
            return None
        function = self._origins.function(call.func) or self._origins.lambda_of(call.func) or self._of_object(call)
        return None if function is None or function in self._index.generators or self._is_loss(function) else function

    def _of_object(self, call: cst.Call) -> cst.FunctionDef | None:
        """What runs at `network(x)`, of a class of the file's own that is no module or layer."""
        owner = self._origins.class_of(call.func)
        return None if owner is None or is_network(self._origins, owner) else self._origins.method(owner, "__call__")

    def _is_loss(self, function: Body) -> bool:
        """Whether a function certainly gives one number for the batch."""
        given = self._index.given_back(function)
        return bool(given) and all(map(self._is_number, given))

    @within_itself(False)
    def _is_number(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.BinaryOperation):
            return self._is_number(node.left) and self._is_number(node.right)
        if isinstance(node, cst.Call):
            along = argument(node, "axis", 1) is not None
            return self._origins.kind(node.func) in _REDUCES and not along
        made = self._origins.of(node) if isinstance(node, cst.Name) else ()
        return isinstance(node, cst.BaseNumber) or (
            bool(made) and all(not o.path and o.node is not node and self._is_number(o.node) for o in made)
        )

    def _reads(self, inside: Iterable[cst.CSTNode]) -> bool:
        names = (n for n in inside if isinstance(n, cst.Name | cst.Attribute) and not self._index.is_target(n))
        return any(self._is_variable(n) for n in names)

    def _is_variable(self, node: cst.Name | cst.Attribute) -> bool:
        """Whether it is a variable, or holds some, and is no argument: what is given is not taken for the batch."""
        if isinstance(node, cst.Name) and any(d.kind == "param" for d in reaching(self._index, node)):
            return False
        if Kind.VARIABLE in self._origins.kinds(node):
            return True
        held = (o.node for o in self._origins.of(node) if isinstance(o.node, cst.Dict | cst.List | cst.Tuple))
        parts = (n for each in held for n in nodes(each) if isinstance(n, cst.Call))
        return any(self._origins.kind(part.func) is Kind.VARIABLE for part in parts)
