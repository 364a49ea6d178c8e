"""What calls in a loss give: loss objects, models, the file's own functions and classes, sums of terms."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from ...catalogue import Kind
from ..apis import (
    EXCHANGES,
    FRAMEWORKS,
    GIVES_LOSS,
    KERAS_LOSS,
    MAKES_WEIGHT,
    MOVES,
    OVER_AXES,
    PUTS_TOGETHER,
    SAME_COUNT,
)
from ..data import Draw, numpy_draw
from ..program import (
    ITER,
    LAYERS,
    Addition,
    Origin,
    Origins,
    additions,
    argument,
    axes,
    is_network,
    method,
    receiver,
    within_itself,
)
from . import batch_values as batch
from . import shapes
from .batch_values import Reduction, Value
from .objects import LossObjects
from .tensor_calls import Evaluate, Quotient, TensorCalls

_KNOWN = {
    "builtins.next": Value(Reduction.PER_EXAMPLE, opaque=True, given=True),
    "tfdp.runtime.local_batch_size": batch.COUNT,
    "keras.backend.epsilon": batch.NUMBER,
    "keras.config.epsilon": batch.NUMBER,
    "tfdp.runtime.global_batch_size": batch.COUNT,
    "tfdp.runtime.local_rows": batch.GIVEN_ROWS,
}


class LossCalls:
    """Calls whose result a loss is made of."""

    def __init__(
        self,
        origins: Origins,
        value: Evaluate,
        part: Callable[[cst.CSTNode, tuple[int, ...]], Value],
        quotient: Quotient,
        compiled: Evaluate,
    ) -> None:
        self._origins, self._value, self._part, self._compiled = origins, value, part, compiled
        self._tensors = TensorCalls(origins, value, quotient)
        self.objects = LossObjects(origins, value)

    def of(self, call: cst.Call) -> Value:
        """How the call's result depends on the batch."""
        api = self._origins.called(call)
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
        if api in EXCHANGES and call.args:
            return shapes.shared(self._value(call.args[0].value), self._adds_up(call, api))
        of_python = {f"builtins.{name}" for name in ("float", "int", "abs", "max", "min")}
        if api.startswith(("numpy.", "math.")) or api in of_python:
            return self._of_numbers(call, api)
        if not api and method(call) == "gradient" and Kind.TAPE in self._origins.kinds(receiver(call)):
            return self._gradient(call)
        if not api and method(call) in MAKES_WEIGHT:
            return batch.CONSTANT
        scales = not api and method(call) in {"scale_loss", "get_scaled_loss"}  # by as much on all workers
        if scales and self._origins.kinds(receiver(call)) == {Kind.OPTIMIZER}:
            return self._value(call.args[0].value) if call.args else batch.UNKNOWN
        return self._function(call, call.func)

    def _adds_up(self, call: cst.Call, api: str) -> bool | None:
        """Whether ranks' values are added up, not averaged; None if neither."""
        op = argument(call, "op", 1)
        if api != "tfdp.runtime.allreduce" or op is None:
            return api == "tfdp.runtime.global_sum"
        return {"tfdp.runtime.Sum": True, "tfdp.runtime.Average": False}.get(self._origins.names.api(op.value) or "")

    def _of_numbers(self, call: cst.Call, api: str) -> Value:
        """A function of Python's or NumPy's, of values that do not depend on the batch's examples."""
        over = api.startswith("numpy.") and api.rpartition(".")[2] in OVER_AXES
        if over and self._once(call):
            return batch.NUMBER
        if over and call.args and (found := self._of_axes(call.args[0].value, call, 1)) is not None:
            return found
        values = self._arguments(call)
        if not values or api.startswith("numpy.random.") or _examples(values):
            return batch.UNKNOWN
        return values[0] if api in SAME_COUNT and len(values) == 1 else batch.elementwise(values)

    def _of_axes(self, operand: cst.BaseExpression, call: cst.Call, place: int) -> Value | None:
        """NumPy's statistics of examples; None of anything else."""
        value = self._value(operand)
        examples = value.mixed or value.reduction is Reduction.PER_EXAMPLE
        return batch.statistic(value, axes(self._origins, call, place)) if examples else None

    def _once(self, call: cst.Call) -> bool:
        """Whether the call is made once, outside any step: then of all the data, not of a batch."""
        inside = cst.FunctionDef | cst.Lambda | cst.BaseComp | cst.For | cst.While
        return not any(isinstance(above, inside) for above in self._origins.index.ancestors(call))

    def _drawn(self, draw: Draw) -> Value:
        """NumPy's random numbers: one row for each example, or the same for all."""
        if not draw.known:
            return batch.UNKNOWN
        rows = batch.NUMBER if draw.size is None else self._value(draw.size)
        if rows.reduction is Reduction.CONSTANT and not rows.power:
            return batch.NUMBER
        return batch.GIVEN_ROWS if rows.power == 1 else batch.UNKNOWN

    def is_tensor(self, call: cst.Call) -> bool:
        """Whether the call is one of a tensor function: looping over its result is looping over examples."""
        return self._tensors.knows(self._tensors.kind(call.func)[0])

    def is_total(self, call: cst.Call) -> bool:
        """Whether the call itself takes a sum or mean: a function that does, or a loss object."""
        made = self._origins.made(call.func)
        if isinstance(made, cst.Call):
            return self._origins.kind(made.func) is Kind.LOSS_CLASS
        return self._tensors.kind(call.func)[0] in {Kind.MEAN, Kind.SUM, Kind.LOSS_FUNCTION}

    def _function(self, call: cst.Call, func: cst.CSTNode) -> Value:
        kind, name = self._tensors.kind(func)
        if kind is not None and self._tensors.knows(kind):
            return self._tensors.of(call, kind, name)
        if name:
            return batch.UNKNOWN if name.startswith(FRAMEWORKS) else self._opaque(call, deep=False)
        return self._called(call)

    def _called(self, call: cst.Call) -> Value:
        found = [self._callee(call, o) for o in self._origins.of(call.func)]
        return batch.join(found) if found else batch.UNKNOWN

    def _callee(self, call: cst.Call, origin: Origin) -> Value:
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

    def _method(self, call: cst.Call, func: cst.Attribute) -> Value:
        """A method of something that this file does not define."""
        name = func.attr.value
        if name in KERAS_LOSS:
            return self._of_keras(call, func.value)
        if name in OVER_AXES and (found := self._of_axes(func.value, call, 0)) is not None:
            return found
        known = [self._origins.called(o.node) for o in self._origins.of(func.value)]
        framework = any(n.startswith(FRAMEWORKS) and not n.startswith(LAYERS) for n in known)
        owned = Kind.MODEL in self._origins.kinds(func.value)
        if name in GIVES_LOSS | PUTS_TOGETHER | MOVES or (framework and not owned):
            return batch.UNKNOWN
        batches = any(v.reduction is Reduction.PER_EXAMPLE for v in self._arguments(call))
        return self._opaque(call, deep=batches)  # else it may make a dataset

    def _of_keras(self, call: cst.Call, model: cst.BaseExpression) -> Value:
        """Keras' own loss, of what the model gives for each example: it knows no outputs that couple examples."""
        output = argument(call, "y_pred", 2 if method(call) == "compute_loss" else 1)
        return batch.UNKNOWN if output is not None and not self._is_of_each(output.value) else self._compiled(model)

    @within_itself(False)
    def _is_of_each(self, node: cst.BaseExpression) -> bool:
        """Whether outputs are values of each example: one, or several written out."""
        if isinstance(node, cst.List | cst.Tuple | cst.Dict):
            return all(self._is_of_each(e.value) for e in node.elements)
        written = [o.node for o in self._origins.of(node) if not o.path]
        if any(isinstance(w, cst.List | cst.Tuple | cst.Dict) for w in written):
            return all(isinstance(w, cst.BaseExpression) and self._is_of_each(w) for w in written)
        return self._value(node).reduction in {Reduction.PER_EXAMPLE, *batch.FIXED}

    def _arguments(self, call: cst.Call) -> list[Value]:
        return [self._value(a.value) for a in call.args]

    def _opaque(self, call: cst.Call, deep: bool) -> Value:
        """Something not looked into gives one value per example, unless it may be a loss.

        A loss takes several values of the batch, and one of them is computed: not just read from the data.
        """
        values = self._arguments(call)
        if any(v.mixed for v in values):
            return batch.MIXED
        computed = any(v.deep or v.reduction is Reduction.UNKNOWN for v in values)
        if (computed and _examples(values) > 1) or any(map(batch.is_number, values)):
            return Value(Reduction.UNKNOWN, deep=deep)
        return Value(Reduction.PER_EXAMPLE, deep=deep, opaque=True, guessed=True)

    # --- objects ------------------------------------------------------------------------------------------------------

    def _object(self, call: cst.Call, made: cst.Call) -> Value:
        kind, api = self._origins.kind(made.func), self._origins.called(made)
        if kind is Kind.LOSS_CLASS:
            return self.objects.of(call, made)
        if (own := self.of_own_object(call, ())) is not None:
            return own
        if kind is Kind.MODEL or api.startswith(LAYERS):
            values = self._arguments(call)
            if any(v.mixed for v in values):
                return batch.MIXED
            scalar = any(map(batch.is_number, values))
            return batch.UNKNOWN if scalar else Value(Reduction.PER_EXAMPLE, deep=True, opaque=True)
        if api.startswith(FRAMEWORKS) or ".losses." in api:
            return batch.UNKNOWN
        return self._opaque(call, deep=True)

    def of_own_object(self, call: cst.Call, path: tuple[int, ...]) -> Value | None:
        """A called instance of the file's own class, or None where it is no such thing.

        A model's or layer's result is one value per example, unless its method visibly sums or averages.
        """
        owner = self._origins.class_of(call.func)
        if owner is None:
            return None
        own = self._origins.method(owner, "__call__") or self._origins.method(owner, "call")
        returned = self._origins.index.returned(own) if own is not None else []
        inner = batch.join(self._part(value, path) for value in returned)
        if is_network(self._origins, owner):
            if inner.mixed or any(v.mixed for v in self._arguments(call)):
                return batch.MIXED
            if inner.reduction in batch.NUMBERS:
                return inner
            guessed = inner.guessed or inner.reduction is not Reduction.PER_EXAMPLE
            flat = batch.flat(inner)  # one number per example, or may be
            return Value(Reduction.PER_EXAMPLE, deep=not flat, opaque=True, guessed=guessed)
        if any(self._origins.names.api(b.value) is not None for b in owner.bases):
            made = self._origins.made(call.func) if not path else None
            return self.objects.of_own(call, made, owner, inner) if isinstance(made, cst.Call) else batch.UNKNOWN
        return batch.UNKNOWN if inner == batch.NOTHING else inner

    # --- sums of terms ------------------------------------------------------------------------------------------------

    def _summed(self, call: cst.Call) -> Value:
        """`sum(terms)`, `tf.add_n(terms)`."""
        first = next((a for a in call.args if not a.star and a.keyword is None), argument(call, "inputs"))
        if first is None:
            return batch.UNKNOWN
        found = [self._terms(o) for o in self._origins.of(first.value)]
        start = [self._value(a.value) for a in call.args[1:2] if a.keyword is None]
        return batch.added([batch.join(found), *start]) if found else batch.UNKNOWN

    def _terms(self, origin: Origin) -> Value:
        node = origin.node
        if not origin.path and isinstance(node, cst.List | cst.Tuple | cst.ListComp | cst.GeneratorExp):
            return self.together(node)
        return batch.reduced(self._part(node, origin.path), (), batch.SUM)

    def together(self, node: cst.List | cst.Tuple | cst.ListComp | cst.GeneratorExp) -> Value:
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
                written = isinstance(origin.node, cst.List | cst.Tuple) and not origin.path
                element = self._part(origin.node, (*origin.path, ITER))
                if not written and element.reduction is not Reduction.CONSTANT:
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
        names = [t for t in targets if isinstance(t, cst.Name)]
        if len(names) < len(targets):
            return None
        scope, found = index.scope_of(statement), list[Addition]()
        for name in names:
            own = [d for d in index.lookup(name.value, scope)[1] if d.value is node]
            found += additions(self._origins, own)
        values = [a.values if method(a.place) == "append" else None for a in found]
        if any(v is None or len(v) != 1 for v in values):
            return None
        return [v for each in values for v in each or () if isinstance(v, cst.BaseExpression)]

    # --- gradients ----------------------------------------------------------------------------------------------------

    def _gradient(self, call: cst.Call) -> Value:
        """The gradient of per-example values, or their sum, by the examples is one per example."""
        target, sources = argument(call, "target", 0), argument(call, "sources", 1)
        if target is None or sources is None:
            return batch.UNKNOWN
        of, by = self._value(target.value), self._by(sources.value)
        if batch.NOTHING in {of, by}:
            return batch.NOTHING
        if of.whole:
            return batch.MIXED  # all ranks' examples are in it
        whole = of.reduction is Reduction.SUM or (of.reduction is Reduction.PER_EXAMPLE and not of.power)
        if by.reduction is not Reduction.PER_EXAMPLE or not (whole or of.reduction is Reduction.MEAN):
            return batch.UNKNOWN
        return Value(Reduction.PER_EXAMPLE, deep=True, power=0 if whole else -1)

    def _by(self, sources: cst.BaseExpression) -> Value:
        if isinstance(sources, cst.List | cst.Tuple):
            return batch.elementwise(self._value(e.value) for e in sources.elements)
        return self._value(sources)

    def gives_list_of_gradients(self, call: cst.Call) -> bool:
        """Whether the call gives the gradients by the members of a list that is written out."""
        sources = argument(call, "sources", 1) if method(call) == "gradient" else None
        return sources is not None and isinstance(sources.value, cst.List | cst.Tuple)


def _examples(values: list[Value]) -> int:
    """How many of them depend on the batch, or may."""
    return sum(v.reduction not in batch.FIXED for v in values)
