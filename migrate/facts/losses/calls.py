"""What calls in a loss give: loss objects, models, the file's own functions and classes, sums of terms."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from ...catalogue import Kind
from ..data import Draw, numpy_draw
from ..program import ITER, LAYERS, Origin, Origins, argument, axes, is_network, within_itself
from . import batch_values as batch
from . import shapes
from .batch_values import Reduction, Value
from .objects import LossObjects
from .tensor_calls import Evaluate, Quotient, TensorCalls

_FRAMEWORKS = ("tensorflow.", "keras.", "numpy.", "math.", "builtins.")
_KEPT_BY_PYTHON = frozenset({"builtins.float", "builtins.int", "builtins.abs", "builtins.max", "builtins.min"})
_KNOWN = {
    "builtins.next": Value(Reduction.PER_EXAMPLE, opaque=True, given=True),
    "tfdp.runtime.local_batch_size": batch.COUNT,
    "keras.backend.epsilon": batch.NUMBER,
    "keras.config.epsilon": batch.NUMBER,
    "tfdp.runtime.global_batch_size": batch.COUNT,
    "tfdp.runtime.local_rows": batch.GIVEN_ROWS,
}
_SHARES = frozenset(f"tfdp.runtime.{name}" for name in ("allreduce", "global_mean", "global_sum"))
_SAME_NUMBER = frozenset({"builtins.float", "builtins.int", "numpy.float32", "numpy.float64", "numpy.int32"})
_OF_ALL_DATA = frozenset(f"numpy.{name}" for name in ("mean", "std", "var", "max", "min", "median"))
_LOSS_METHODS = frozenset({"compiled_loss", "compute_loss", "loss", "evaluate", "train_on_batch", "result"})
_KERAS_LOSSES = frozenset({"compiled_loss", "compute_loss"})
_SCALES_LOSS = frozenset({"scale_loss", "get_scaled_loss"})  # times a number that is the same on all workers
_MAKES_VARIABLE = frozenset({"add_weight", "add_variable"})
_STATISTICS = frozenset(
    {
        "max",
        "min",
        "mean",
        "sum",
        "std",
        "var",
        "ptp",
        "prod",
        "any",
        "all",
        "argmax",
        "argmin",
        "sort",
        "cumsum",
        "dot",
        "take",
    }
)
_OVER_AXES = frozenset({"max", "min", "amax", "amin", "mean", "median", "std", "var"})
_LAYOUTS = frozenset({"reshape", "transpose", "flatten", "ravel", "swapaxes"})


class LossCalls:
    """Calls whose result a loss is made of."""

    def __init__(
        self,
        origins: Origins,
        value: Evaluate,
        at: Callable[[Origin], Value | None],
        quotient: Quotient,
        compiled: Evaluate,
    ) -> None:
        self._origins, self._value, self._at, self._compiled = origins, value, at, compiled
        self._tensors = TensorCalls(origins, value, quotient)
        self._objects = LossObjects(origins, value)

    def of(self, call: cst.Call) -> Value | None:
        """How the call's result depends on the batch."""
        api = self._origins.names.api(call.func) or ""
        if api in {"builtins.sum", "tensorflow.add_n", "tensorflow.math.add_n"}:
            return self._summed(call)
        if api == "tensorflow.nn.compute_average_loss":
            return self._tensors.average_loss(call)
        if api in _KNOWN:
            return _KNOWN[api]
        if (size := shapes.size(self._origins, call)) is not None:
            return shapes.dimension(self._value(size), 0)
        if (drawn := numpy_draw(self._origins, call)) is not None:
            return self._drawn(drawn)
        if api in _SHARES and call.args:
            return shapes.shared(self._value(call.args[0].value), self._adds_up(call, api))
        if api.startswith(("numpy.", "math.")) or api in _KEPT_BY_PYTHON:
            return self._of_numbers(call, api)
        if isinstance(call.func, cst.Attribute) and not api:
            if call.func.attr.value == "gradient" and Kind.TAPE in self._origins.kinds(call.func.value):
                return self._gradient(call)
            if call.func.attr.value in _MAKES_VARIABLE:
                return batch.CONSTANT
            if call.func.attr.value in _SCALES_LOSS and self._origins.kinds(call.func.value) == {Kind.OPTIMIZER}:
                return self._value(call.args[0].value) if call.args else batch.UNKNOWN
        return self._function(call, call.func)

    def _adds_up(self, call: cst.Call, api: str) -> bool | None:
        """Whether ranks' values are added up, not averaged; None if neither."""
        op = argument(call, "op", 1)
        if api != "tfdp.runtime.allreduce" or op is None:
            return api == "tfdp.runtime.global_sum"
        return {"tfdp.runtime.Sum": True, "tfdp.runtime.Average": False}.get(self._origins.names.api(op.value) or "")

    def _of_numbers(self, call: cst.Call, api: str) -> Value | None:
        """A function of Python's or NumPy's, of values that do not depend on the batch's examples."""
        if api in _OF_ALL_DATA and self._once(call):
            return batch.NUMBER
        over = api.rpartition(".")[2] in _OVER_AXES and call.args
        if over and (found := self._of_axes(call.args[0].value, call, 1)) is not None:
            return found
        if not call.args or api.startswith("numpy.random.") or self._examples(call):
            return batch.UNKNOWN
        values = [self._value(a.value) for a in call.args]
        return values[0] if api in _SAME_NUMBER and len(values) == 1 else batch.elementwise(values)

    def _of_axes(self, operand: cst.BaseExpression, call: cst.Call, place: int) -> Value | None:
        """NumPy's statistics of examples; None of anything else."""
        value = self._value(operand)
        if value is None or not (value.mixed or value.reduction is Reduction.PER_EXAMPLE):
            return None
        return batch.statistic(value, axes(self._origins, call, place))

    def _once(self, call: cst.Call) -> bool:
        """Whether the call is made once, outside any step: then of all the data, not of a batch."""
        inside = cst.FunctionDef | cst.Lambda | cst.BaseComp | cst.For | cst.While
        return not any(isinstance(above, inside) for above in self._origins.index.ancestors(call))

    def _drawn(self, draw: Draw) -> Value | None:
        """NumPy's random numbers: one row for each example, or the same for all."""
        if not draw.known:
            return batch.UNKNOWN
        rows = None if draw.size is None else self._value(draw.size)
        if draw.size is None or (rows is not None and rows.reduction is Reduction.CONSTANT and not rows.power):
            return batch.NUMBER
        return batch.GIVEN_ROWS if rows is not None and rows.power == 1 else batch.UNKNOWN

    @property
    def of_a_model(self) -> Value:
        """What each of a model's losses is."""
        return self._objects.of_a_model()

    def is_tensor(self, call: cst.Call) -> bool:
        """Whether the call is one of a tensor function: looping over its result is looping over examples."""
        return self._tensors.knows(self._tensors.kind(call.func)[0])

    def is_total(self, call: cst.Call) -> bool:
        """Whether the call itself takes a sum or mean: a function that does, or a loss object."""
        made = self._origins.one(call.func)
        node = made.node if made is not None and not made.path else None
        if isinstance(node, cst.Call):
            return self._origins.kind(node.func) is Kind.LOSS_CLASS
        return self._tensors.kind(call.func)[0] in {Kind.MEAN, Kind.SUM, Kind.LOSS_FUNCTION}

    def _function(self, call: cst.Call, func: cst.CSTNode) -> Value | None:
        kind, name = self._tensors.kind(func)
        if kind is not None and self._tensors.knows(kind):
            return self._tensors.of(call, kind, name)
        if name:
            return batch.UNKNOWN if name.startswith(_FRAMEWORKS) else self._opaque(call, deep=False)
        return self._called(call)

    def _called(self, call: cst.Call) -> Value | None:
        found = [self._callee(call, o) for o in self._origins.of(call.func)]
        return batch.join(found) if found else batch.UNKNOWN

    def _callee(self, call: cst.Call, origin: Origin) -> Value | None:
        made = origin.node
        if isinstance(made, cst.Call):
            return self._object(call, made) if not origin.path else self._opaque(call, deep=True)
        if isinstance(made, cst.Lambda) and not origin.path:
            understood = batch.elementwise(self._value(a.value) for a in call.args)
            return self._value(made.body) if understood != batch.UNKNOWN else understood
        if isinstance(made, cst.Param):
            return self._opaque(call, deep=True)
        if isinstance(made, cst.ClassDef):
            return self.of_own_object(call, ()) or batch.UNKNOWN  # `self(x)`
        if origin.path or not isinstance(made, cst.Attribute | cst.Name):
            return batch.UNKNOWN  # a function of the file whose return could not be followed, among others
        if self._origins.names.api(made) is not None:
            return self._function(call, made)
        return self._method(call, made) if isinstance(made, cst.Attribute) else batch.UNKNOWN

    def _method(self, call: cst.Call, method: cst.Attribute) -> Value | None:
        """A method of something that this file does not define."""
        if method.attr.value in _KERAS_LOSSES:
            return self._of_keras(call, method)
        if method.attr.value in _OVER_AXES and (found := self._of_axes(method.value, call, 0)) is not None:
            return found
        makers = [o.node for o in self._origins.of(method.value) if isinstance(o.node, cst.Call)]
        known = [self._origins.names.api(m.func) or "" for m in makers]
        framework = any(n.startswith(_FRAMEWORKS) and not n.startswith(LAYERS) for n in known)
        owned = Kind.MODEL in self._origins.kinds(method.value)
        if method.attr.value in _LOSS_METHODS | _STATISTICS | _LAYOUTS or (framework and not owned):
            return batch.UNKNOWN
        batches = [v for a in call.args if (v := self._value(a.value)) and v.reduction is Reduction.PER_EXAMPLE]
        return self._opaque(call, deep=bool(batches))  # else it may make a dataset

    def _of_keras(self, call: cst.Call, method: cst.Attribute) -> Value | None:
        """Keras' own loss, of what the model gives for each example: it knows no outputs that couple examples."""
        place = 2 if method.attr.value == "compute_loss" else 1
        output = argument(call, "y_pred", place)
        if output is not None and not self._is_of_each(output.value):
            return batch.UNKNOWN
        return self._compiled(method.value)

    @within_itself(False)
    def _is_of_each(self, node: cst.BaseExpression) -> bool:
        """Whether outputs are values of each example: one, or several written out."""
        if isinstance(node, cst.List | cst.Tuple | cst.Dict):
            parts = [e.value for e in node.elements]
            return all(self._is_of_each(p) for p in parts)
        written = [o.node for o in self._origins.of(node) if not o.path]
        if any(isinstance(w, cst.List | cst.Tuple | cst.Dict) for w in written):
            return all(isinstance(w, cst.BaseExpression) and self._is_of_each(w) for w in written)
        found = self._value(node)
        return found is None or found.reduction in {Reduction.PER_EXAMPLE, Reduction.CONSTANT}

    def _opaque(self, call: cst.Call, deep: bool) -> Value:
        """Something not looked into gives one value per example, unless it may be a loss.

        A loss takes several values of the batch, and one of them is computed: not just read from the data.
        """
        values = [self._value(a.value) for a in call.args]
        if self._is_given_mixed(call):
            return batch.MIXED
        computed = any(v is not None and (v.deep or v.reduction is Reduction.UNKNOWN) for v in values)
        if (computed and self._examples(call) > 1) or self._of_scalars(call):
            return Value(Reduction.UNKNOWN, deep=deep)
        return Value(Reduction.PER_EXAMPLE, deep=deep, opaque=True, guessed=True)

    def _is_given_mixed(self, call: cst.Call) -> bool:
        values = [self._value(a.value) for a in call.args]
        return any(v is not None and v.mixed for v in values)

    def _examples(self, call: cst.Call) -> int:
        """How many of the arguments depend on the batch, or may."""
        values = [self._value(a.value) for a in call.args]
        return sum(v is not None and v.reduction is not Reduction.CONSTANT for v in values)

    def _of_scalars(self, call: cst.Call) -> bool:
        """Whether an argument is a sum or mean over the batch already."""
        values = [self._value(a.value) for a in call.args]
        return any(v is not None and (v.whole or v.reduction in {Reduction.SUM, Reduction.MEAN}) for v in values)

    # --- objects ------------------------------------------------------------------------------------------------------

    def _object(self, call: cst.Call, made: cst.Call) -> Value | None:
        kind, api = self._origins.kind(made.func), self._origins.names.api(made.func) or ""
        if kind is Kind.LOSS_CLASS:
            return self._objects.of(call, made)
        if (own := self.of_own_object(call, ())) is not None:
            return own
        if kind is Kind.MODEL or api.startswith(LAYERS):
            if self._is_given_mixed(call):
                return batch.MIXED
            return batch.UNKNOWN if self._of_scalars(call) else Value(Reduction.PER_EXAMPLE, deep=True, opaque=True)
        if api.startswith(_FRAMEWORKS) or ".losses." in api:
            return batch.UNKNOWN
        return self._opaque(call, deep=True)

    def of_own_object(self, call: cst.Call, path: tuple[int, ...]) -> Value | None:
        """A called instance of the file's own class, or None where it is no such thing.

        A model's or layer's result is one value per example, unless its method visibly sums or averages.
        """
        owner = self._origins.class_of(call.func)
        if owner is None:
            return None
        method = self._origins.method(owner, "__call__") or self._origins.method(owner, "call")
        returned = [r.value for r in self._origins.index.returns[method] if r.value is not None] if method else []
        inner = batch.join(self._at(o) for value in returned for o in self._origins.of(value, path))
        if is_network(self._origins, owner):
            if self._is_given_mixed(call) or (inner is not None and inner.mixed):
                return batch.MIXED
            scalar = inner is not None and inner.reduction in {Reduction.SUM, Reduction.MEAN}
            understood = inner is not None and inner.reduction is Reduction.PER_EXAMPLE
            flat = inner is not None and batch.flat(inner)  # one number per example, or may be
            guessed = inner is None or not understood or inner.guessed
            return inner if scalar else Value(Reduction.PER_EXAMPLE, deep=not flat, opaque=True, guessed=guessed)
        if owner.bases and any(self._origins.names.api(b.value) is not None for b in owner.bases):
            origin = self._origins.one(call.func)
            made = origin.node if origin is not None and not path else None
            return self._objects.of_own(call, made, owner, inner) if isinstance(made, cst.Call) else batch.UNKNOWN
        return inner or batch.UNKNOWN

    # --- sums of terms ------------------------------------------------------------------------------------------------

    def _summed(self, call: cst.Call) -> Value | None:
        """`sum(terms)`, `tf.add_n(terms)`."""
        first = next((a.value for a in call.args if not a.star and a.keyword is None), None) or (
            given.value if (given := argument(call, "inputs")) is not None else None
        )
        if first is None:
            return batch.UNKNOWN
        found = [self._terms(o) for o in self._origins.of(first)]
        start = [self._value(a.value) for a in call.args[1:2] if a.keyword is None]
        return batch.added([batch.join(found), *start]) if found else batch.UNKNOWN

    def _terms(self, origin: Origin) -> Value | None:
        node = origin.node
        if not origin.path and isinstance(node, cst.List | cst.Tuple | cst.ListComp | cst.GeneratorExp):
            return self.together(node)
        return batch.reduced(self._at(origin), (), batch.SUM)

    def together(self, node: cst.List | cst.Tuple | cst.ListComp | cst.GeneratorExp) -> Value | None:
        """The sum of the elements of a list that is written out, with what is appended to it later."""
        if isinstance(node, cst.ListComp | cst.GeneratorExp):
            return self._value(node.elt) if self._goes_over_no_batch(node.for_in) else batch.UNKNOWN
        members = self.members(node)
        return batch.added(self._value(m) for m in members) if members else batch.UNKNOWN

    def members(self, node: cst.List | cst.Tuple) -> list[cst.BaseExpression]:
        """The elements of a list that is written out, with what is appended to it; none where that is not known."""
        later = self._appended(node)
        elements = [e.value for e in node.elements if isinstance(e, cst.Element)]
        return [] if later is None or len(elements) < len(node.elements) else [*elements, *later]

    def _goes_over_no_batch(self, loop: cst.CompFor | None) -> bool:
        """Whether a comprehension goes over weights, a range or a list that is written out."""
        while loop is not None:
            for origin in self._origins.of(loop.iter):
                element = self._at(Origin(origin.node, (*origin.path, ITER)))
                written = isinstance(origin.node, cst.List | cst.Tuple) and not origin.path
                if not written and (element is None or element.reduction is not Reduction.CONSTANT):
                    return False
            loop = loop.inner_for_in
        return True

    def _appended(self, node: cst.List | cst.Tuple) -> list[cst.BaseExpression] | None:
        """What is appended to a list under its name; None where it may change in other ways."""
        index = self._origins.index
        statement = index.parents.get(node)
        if not isinstance(node, cst.List) or not isinstance(statement, cst.Assign | cst.AnnAssign):
            return []
        targets = [t.target for t in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
        names = {t.value for t in targets if isinstance(t, cst.Name)}
        if len(names) < len(targets):
            return None
        for change in ("extend", "insert", "__setitem__"):
            if any(isinstance(a.value, cst.Name) and a.value.value in names for a in index.attributes[change]):
                return None
        if any(isinstance(s.value, cst.Name) and s.value.value in names for s in index.subscript_stores):
            return None
        calls = [index.parents[a] for a in index.attributes["append"] if _names(a.value, names)]
        if any(not isinstance(c, cst.Call) or len(c.args) != 1 for c in calls):
            return None
        return [c.args[0].value for c in calls if isinstance(c, cst.Call)]

    # --- gradients ----------------------------------------------------------------------------------------------------

    def _gradient(self, call: cst.Call) -> Value | None:
        """The gradient of per-example values, or their sum, by the examples is one per example."""
        target, sources = argument(call, "target", 0), argument(call, "sources", 1)
        if target is None or sources is None:
            return batch.UNKNOWN
        of, by = self._value(target.value), self._by(sources.value)
        if of is None or by is None:
            return None
        if of.whole:
            return batch.MIXED  # all ranks' examples are in it
        whole = of.reduction is Reduction.SUM or (of.reduction is Reduction.PER_EXAMPLE and not of.power)
        if by.reduction is not Reduction.PER_EXAMPLE or not (whole or of.reduction is Reduction.MEAN):
            return batch.UNKNOWN
        return Value(Reduction.PER_EXAMPLE, deep=True, power=0 if whole else -1)

    def _by(self, sources: cst.BaseExpression) -> Value | None:
        if isinstance(sources, cst.List | cst.Tuple):
            return batch.elementwise(self._value(e.value) for e in sources.elements)
        return self._value(sources)

    def gives_list_of_gradients(self, call: cst.Call) -> bool:
        """Whether the call gives the gradients by the members of a list that is written out."""
        gradient = isinstance(call.func, cst.Attribute) and call.func.attr.value == "gradient"
        sources = argument(call, "sources", 1)
        return gradient and sources is not None and isinstance(sources.value, cst.List | cst.Tuple)


def _names(node: cst.CSTNode, names: set[str]) -> bool:
    return isinstance(node, cst.Name) and node.value in names
