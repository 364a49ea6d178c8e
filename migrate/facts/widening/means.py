"""Losses that are certainly means over the batch: their gradients stay as large when the batch grows."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ...catalogue import Kind
from ..keras import Compile
from ..program import Origins, argument, is_none, method, within_itself

_PARTS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_SAME = frozenset({"tensorflow.cast", "tensorflow.identity", "tensorflow.convert_to_tensor", "tensorflow.squeeze"})
_ADDS = frozenset({"tensorflow.add_n", "builtins.sum", "tensorflow.add"})
_SCALES = frozenset({"get_scaled_loss", "scale_loss"})
_OF_KERAS = frozenset({"compute_loss", "compiled_loss"})
_REDUCES = ("reduction", "axis", "loss_weights")


class Means:
    """Answers for the losses of a file. What is not known to be a mean is none."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    @within_itself(True)
    def is_mean(self, node: cst.CSTNode) -> bool:
        """Whether a number is a mean over the batch, or follows from such, constants and penalties of weights."""
        if isinstance(node, cst.BaseNumber) or self._is_penalty(node):
            return True
        if isinstance(node, cst.BinaryOperation):
            fits = isinstance(node.operator, _PARTS)
            return fits and all(self._is_mean_or_setting(side) for side in (node.left, node.right))
        if isinstance(node, cst.UnaryOperation):
            return self.is_mean(node.expression)
        if isinstance(node, cst.AugAssign):
            added = self._is_mean_or_setting(node.target) and self._is_mean_or_setting(node.value)
            return added and not self._is_repeated(node)
        if isinstance(node, cst.Call):
            return self._is_mean_call(node)
        return self._of_all(node)

    def _is_repeated(self, node: cst.AugAssign) -> bool:
        """Whether it stands in a loop of the step: over examples, it may be."""
        ends = (cst.For, cst.While, cst.With, cst.FunctionDef)
        around = next((each for each in self._origins.index.ancestors(node) if isinstance(each, ends)), None)
        return isinstance(around, cst.For | cst.While)

    def _of_all(self, node: cst.CSTNode) -> bool:
        made = self._origins.of(node)
        return bool(made) and all(o.node is not node and not o.path and self.is_mean(o.node) for o in made)

    def _is_setting(self, node: cst.BaseExpression) -> bool:
        """Whether it is a number of the script's own: a weight, a coefficient."""
        made = self._origins.of(node)
        return bool(made) and all(isinstance(o.node, cst.BaseNumber) for o in made)

    def _is_mean_or_setting(self, node: cst.BaseExpression) -> bool:
        return self._is_setting(node) or self.is_mean(node)

    def _is_mean_call(self, call: cst.Call) -> bool:
        api, kind = self._origins.called(call), self._origins.kind(call.func)
        if api in _SAME or (not api and method(call) in _SCALES):
            return bool(call.args) and self.is_mean(call.args[0].value)
        if not api and method(call) in _OF_KERAS:
            return True  # what the model was compiled with, of which is asked by itself
        if kind is Kind.MEAN:
            axis = argument(call, "axis", 1)
            return axis is None or is_none(self._origins, axis.value)
        if api in _ADDS:
            return all(self._is_added(a.value) for a in call.args)
        function = self._origins.function(call.func) or self._origins.lambda_of(call.func)
        if function is not None:
            given = self._origins.index.given_back(function)
            return bool(given) and all(map(self.is_mean, given))
        return self._is_loss_object(call.func)

    def _is_added(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.List | cst.Tuple):
            return all(self.is_mean(e.value) for e in node.elements)
        return self.is_mean(node)

    def _is_penalty(self, node: cst.CSTNode) -> bool:
        """`model.losses`, or what a regularizer gives."""
        if isinstance(node, cst.Attribute) and node.attr.value == "losses":
            return True
        made = isinstance(node, cst.Call) and self._origins.kind(node.func) is Kind.REGULARIZER
        return made and self._origins.called(node) != "tensorflow.nn.l2_loss"  # which may be of rows

    def _is_loss_object(self, func: cst.BaseExpression) -> bool:
        """`loss_fn(y, p)` of a loss of Keras that reduces by its default."""
        made = self._origins.of(func)
        return bool(made) and all(not o.path and self._is_keras_loss(o.node) for o in made)

    def _is_keras_loss(self, node: cst.CSTNode) -> bool:
        made = isinstance(node, cst.Call) and self._origins.called(node).startswith("keras.losses.")
        return made and self._origins.called(node).rpartition(".")[2][:1].isupper() and not self._reduces(node)

    def _reduces(self, node: cst.CSTNode) -> bool:
        """Whether a loss may be told how to reduce."""
        args = node.args if isinstance(node, cst.Call) else ()
        return any(a.star or (a.keyword is not None and a.keyword.value in _REDUCES) for a in args) or len(args) > 3

    # --- what `compile` is given --------------------------------------------------------------------------------------

    def unknown(self, compiles: Iterable[Compile]) -> cst.CSTNode | None:
        """The first loss of a compiled model that may not be a mean."""
        for compiled in compiles:
            given = argument(compiled.call, "loss", 1)
            if any(a.star for a in compiled.call.args):
                return compiled.call
            if given is not None and not self._is_compiled_mean(given.value):
                return given.value
        return None

    @within_itself(True)
    def _is_compiled_mean(self, node: cst.CSTNode) -> bool:
        """Keras takes the mean of what a loss gives for each row."""
        if isinstance(node, cst.List | cst.Tuple):
            return all(self._is_compiled_mean(e.value) for e in node.elements)
        if isinstance(node, cst.Dict):
            return all(isinstance(e, cst.DictElement) and self._is_compiled_mean(e.value) for e in node.elements)
        if isinstance(node, cst.BaseString) or is_none(self._origins, node) or self._is_keras_loss(node):
            return True
        if isinstance(node, cst.BaseExpression) and (self._origins.names.api(node) or "").startswith("keras.losses."):
            return True
        function: cst.CSTNode | None = node if isinstance(node, cst.FunctionDef | cst.Lambda) else None
        if isinstance(node, cst.BaseExpression) and function is None:
            function = self._origins.function(node)
        if isinstance(function, cst.FunctionDef | cst.Lambda):
            given = self._origins.index.given_back(function)
            return bool(given) and all(self._is_row_or_mean(each) for each in given)
        made = self._origins.of(node)
        return bool(made) and all(o.node is not node and not o.path and self._is_compiled_mean(o.node) for o in made)

    @within_itself(True)
    def _is_row_or_mean(self, node: cst.CSTNode) -> bool:
        """A mean, or what a function of Keras, or a mean along another axis than the first, gives for each row."""
        if isinstance(node, cst.BinaryOperation):
            return isinstance(node.operator, _PARTS) and all(map(self._is_part, (node.left, node.right)))
        if isinstance(node, cst.Call):
            api, kind = self._origins.called(node), self._origins.kind(node.func)
            of_keras = api.startswith("keras.losses.") or (api.startswith("keras.") and api.endswith("_crossentropy"))
            axis = argument(node, "axis", 1)
            along = axis is not None and self._origins.index.code(axis.value) in {"-1", "1", "2", "3", "[1, 2, 3]"}
            if of_keras or (kind in {Kind.MEAN, Kind.SUM} and along):
                return True
        return self.is_mean(node)

    def _is_part(self, node: cst.BaseExpression) -> bool:
        return self._is_setting(node) or self._is_row_or_mean(node)
