"""What the losses of fitted models are over the batch: those given to `compile`, and what layers add to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import libcst as cst

from ...catalogue import KINDS, Kind
from ..keras import Compile, Fit, is_name, params_of
from ..program import Origins, Problem, Unknown, argument, backward, is_off, last_name, within_itself
from . import batch_values as batch
from .batch_values import Reduction, Value
from .causes import NOT_KNOWN, cause_of_loss
from .loss import Losses
from .masks import Masks
from .objects import LossObjects, mean_of
from .totals import Totals

# The names by which Keras knows losses that couple no examples, beside those of its classes and functions.
_NAMES = frozenset(
    {
        *("mse", "mae", "mape", "msle", "bce", "BCE", "ctc", "CTC", "kl_divergence", "kullback_leibler_divergence"),
        *("mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "log_cosh"),
        *("mean_squared_logarithmic_error", "CategoricalFocalCrossentropy", "cosine_proximity"),
    }
) | {n.rpartition(".")[2] for n, kind in KINDS.items() if kind in {Kind.LOSS_CLASS, Kind.LOSS_FUNCTION}}
_LOOKED_UP = frozenset({"keras.losses.get", "keras.losses.deserialize"})
_NUMBERS = frozenset({Reduction.MEAN, Reduction.SUM})
_WEIGHTS = {"sample_weight": 2, "class_weight": 3}  # where `train_on_batch` takes them
_KERAS_STEPS = {"compute_loss": 3, "compiled_loss": 2}  # where they take weights of examples
_ONE_NUMBER = (
    "the loss is one number for the batch, which Keras multiplies by the mean of these weights; that differs by worker"
)
_EACH = "let the loss function return one value for each example: Keras weights them and takes the mean"
_NEXT = "give compile a loss that is a mean over the batch's examples, or one value for each of them"


class KerasLosses:
    """Answers for the fitted models of a file."""

    def __init__(self, origins: Origins, fits: Iterable[Fit], losses: Callable[[], Losses]) -> None:
        """`losses` is asked only when everything else is known: it may ask back for a model's loss."""
        self._origins, self._fits, self._make = origins, tuple(fits), losses
        self._known: dict[Compile, Value] = {}
        self._causes: dict[Compile, Unknown | None] = {}  # why the loss of a compile is not understood
        self._cause: Unknown | None = None  # the same of what is looked at
        self.functions: set[cst.FunctionDef] = set()  # that Keras calls for a loss
        self._lambdas: set[cst.Lambda] = set()

    @cached_property
    def _losses(self) -> Losses:
        self._narrow()
        found = self._make()
        for function in self._origins.index.functions:
            owner = self._origins.index.enclosing_class(function)
            if function.name.value in {"call", "compute_loss"} and owner is not None:
                found.columns.update(params_of(function)[1:])
        return found

    def _narrow(self) -> None:
        """The functions that Keras calls get labels and outputs, whatever else calls them; those that they call, what
        they are given there."""
        index, compiles = self._origins.index, dict.fromkeys(c for f in self._fits for c in f.compiles)
        todo = [each for c in compiles if (given := self._given(c)) is not None for each in self._functions_in(given)]
        called, seen, only = frozenset(todo), set(todo), set()
        while todo:
            function = todo.pop()
            for call in index.calls:
                if index.enclosing_function(call) is function:
                    only.add(call)
                    inner = self._origins.function(call.func)
                    if inner is not None and inner not in seen:
                        seen.add(inner)
                        todo.append(inner)
        self._origins.narrow(frozenset(only), called)

    @within_itself(())
    def _functions_in(self, node: cst.BaseExpression) -> Sequence[cst.FunctionDef]:
        found: list[cst.FunctionDef] = []
        for origin in self._origins.of(node):
            if isinstance(origin.node, cst.FunctionDef):
                found.append(origin.node)
            elif isinstance(origin.node, cst.List | cst.Tuple | cst.Dict) and not origin.path:
                found += [f for element in origin.node.elements for f in self._functions_in(element.value)]
        return found

    # --- the loss of one compile --------------------------------------------------------------------------------------

    def of(self, compiled: Compile) -> Value:
        """The loss with which a model is trained by Keras' own step."""
        if (own := self._own(compiled)) is None:
            return self._of_keras(compiled)
        self.functions.add(own)
        returned = [r.value for r in self._origins.index.returns[own] if r.value is not None]
        return self._losses.settled(
            lambda: batch.as_loss(batch.join(self._losses.value(r) for r in returned) or batch.UNKNOWN)
        )

    def _own(self, compiled: Compile) -> cst.FunctionDef | None:
        """The `compute_loss` of the model's class, which Keras' step calls for the whole loss."""
        models = [f.model for f in self._fits if compiled in f.compiles]
        made = [self._origins.constructed(o.node) or o.node for m in models for o in self._origins.of(m)]
        found = [self._origins.method(m, "compute_loss") for m in made if isinstance(m, cst.ClassDef)]
        return found[0] if found else None

    def _of_keras(self, compiled: Compile) -> Value:
        """The loss that Keras computes for a model: all that `compile` was given, and what is added."""
        if compiled not in self._known:
            self._known[compiled] = batch.UNKNOWN
            self._known[compiled] = self._whole(compiled)
            self._causes[compiled] = self._cause
        return self._known[compiled]

    def of_model(self, model: cst.CSTNode) -> Value | None:
        """What Keras computes for `self` in a model's own step: of all that compile a model of the class."""
        owner = self._origins.class_of(model)
        if self._origins.is_super(model):
            function = self._origins.index.enclosing_function(model)
            owner = self._origins.index.enclosing_class(function) if function is not None else None
        compiles = [c for f in self._fits for c in f.compiles if owner is None or self._is_of(f, owner)]
        found = [self._of_keras(c) for c in dict.fromkeys(compiles)]
        if any(self._weighted(c) is not None for c in compiles):
            return batch.UNKNOWN
        return batch.join(found) if found else batch.UNKNOWN

    def _is_of(self, fit: Fit, owner: cst.ClassDef) -> bool:
        made = {self._origins.constructed(o.node) or o.node for o in self._origins.of(fit.model)}
        return any(isinstance(m, cst.ClassDef) and self._origins.descends(m, owner) for m in made)

    def _whole(self, compiled: Compile) -> Value:
        given, self._cause = self._given(compiled), None
        terms = [*(self._of_each(given) if given is not None else ()), *self._added]
        if self._mask(given) is not None:
            return batch.UNKNOWN
        scalars = [t for t in terms if t.reduction is not Reduction.CONSTANT]
        if len({t.reduction for t in scalars}) > 1:
            return batch.UNKNOWN
        whole = scalars[0] if scalars else batch.MEAN
        return batch.UNKNOWN if whole.reduction is Reduction.SUM and self._regularized else whole

    def _mask(self, given: cst.BaseExpression | None) -> cst.CSTNode | None:
        """What makes a mask that changes a loss: one number for the batch is left as it is."""
        made = [o.node for o in self._origins.of(given)] if given is not None else []
        own = [m for m in made if isinstance(m, cst.FunctionDef) and self._is_one_number(m)]
        return self._masks.left if not made or len(own) < len(made) else None

    def _is_one_number(self, function: cst.FunctionDef) -> bool:
        found = self._of_each_pair(function)
        return found is not None and (found.whole or found.reduction in _NUMBERS)

    def _given(self, compiled: Compile) -> cst.BaseExpression | None:
        if compiled.own is not None:
            return self._origins.bind(compiled.call, compiled.own).get("loss")
        found = argument(compiled.call, "loss", 1)
        if found is None and any(a.star for a in compiled.call.args):
            tables = [o.node for a in compiled.call.args if a.star for o in self._origins.of(a.value)]
            return next((v for t in tables if (v := _entry(t)) is not None), None)
        return found.value if found is not None else None

    @within_itself([batch.UNKNOWN])
    def _of_each(self, node: cst.BaseExpression) -> list[Value]:
        """Of a list or table of losses, each."""
        return [v for o in self._origins.of(node) for v in self._of_value(o.node if not o.path else None)]

    def _of_value(self, node: cst.CSTNode | None) -> list[Value]:
        if node is None:
            return [batch.UNKNOWN]
        if isinstance(node, cst.List | cst.Tuple):
            return [v for e in node.elements for v in self._of_each(e.value)]
        if isinstance(node, cst.Dict):
            return [v for e in node.elements for v in self._of_each(e.value)]
        if self._origins.names.api(node) == "builtins.None":
            return []
        return [self._of_loss(node)]

    def _of_loss(self, node: cst.CSTNode) -> Value:
        self._losses.cause = None
        found = self._read(node)
        if found.reduction is Reduction.UNKNOWN and self._cause is None:
            self._cause = self._losses.cause or cause_of_loss(self._origins, node)
        return found

    def _read(self, node: cst.CSTNode) -> Value:
        if isinstance(node, cst.SimpleString):
            return batch.MEAN if node.evaluated_value in _NAMES else batch.UNKNOWN
        if isinstance(node, cst.FunctionDef):
            return self._of_function(node)
        if isinstance(node, cst.Lambda):
            self._lambdas.add(node)
            self._losses.columns.update(node.params.params)
            self._losses.labels.update(node.params.params[:1])
            return self._losses.settled(lambda: mean_of(self._losses.value(node.body)))
        if isinstance(node, cst.Call):
            return self._of_object(node)
        if isinstance(node, cst.Name | cst.Attribute):
            kind = self._origins.kind(node)
            if kind is Kind.LOSS_FUNCTION:
                return batch.MEAN
            if kind is Kind.LOSS_CLASS:
                return batch.MEAN  # Keras makes the object
        return batch.MEAN if is_name(self._origins, node) else batch.UNKNOWN

    def _of_function(self, function: cst.FunctionDef) -> Value:
        """A loss function of the file, of which Keras takes the mean."""
        return self._losses.settled(lambda: mean_of(self._of_each_pair(function)))

    def _of_each_pair(self, function: cst.FunctionDef) -> Value | None:
        """What a loss function of the file gives for labels and outputs."""
        method = self._origins.index.enclosing_class(function) is not None
        self.functions.add(function)
        params = params_of(function)[1 if method else 0 :]
        operands = params[:2]
        self._losses.columns.update(operands)
        self._losses.labels.update(operands[:1])
        self._losses.settings.update(params[2:])
        returned = [r.value for r in self._origins.index.returns[function] if r.value is not None]
        return batch.join(self._losses.value(r) for r in returned)

    def _of_object(self, call: cst.Call) -> Value:
        if self._origins.kind(call.func) is Kind.LOSS_CLASS:
            return self._objects.reduced(call, batch.DEEP_ROWS) if not any(a.star for a in call.args) else batch.UNKNOWN
        if self._origins.names.api(call.func) in _LOOKED_UP:
            return batch.MEAN
        owner = self._origins.constructed(call)
        if owner is None:
            return batch.MEAN if is_name(self._origins, call) else batch.UNKNOWN
        method = self._origins.method(owner, "call") or self._origins.method(owner, "__call__")
        above = [self._origins.names.api(b.value) for b in owner.bases]
        if method is None or (owner.bases and above != ["keras.losses.Loss"]):
            return batch.UNKNOWN

        def reduced() -> Value:
            inner = self._of_each_pair(method)
            return self._objects.own_reduced(owner, call, inner) if owner.bases else mean_of(inner)

        found = self._losses.settled(reduced)
        return found if found.reduction in {Reduction.MEAN, Reduction.SUM} else batch.UNKNOWN

    @cached_property
    def _objects(self) -> LossObjects:
        return LossObjects(self._origins, self._losses.value)

    @cached_property
    def _masks(self) -> Masks:
        return Masks(self._origins)

    @property
    def made_of(self) -> frozenset[cst.CSTNode]:
        """All that the file's own loss functions compute."""
        returned = [r for f in self.functions for r in self._origins.index.returns[f]]
        return backward(self._origins, [r.value for r in returned if r.value is not None])

    @property
    def totals(self) -> Totals:
        """The sums over the batch that are taken over all ranks."""
        return self._losses.totals

    @property
    def reconsidered(self) -> list[cst.Call]:
        """Of the compiled losses those that have become others by the sums that later ones share."""
        if not self.totals.shared:
            return []
        return [c.call for c, known in self._known.items() if self._whole(c).reduction is not known.reduction]

    @property
    def divisors(self) -> set[cst.CSTNode]:
        """Written out numbers that divide a sum and are the batch's size."""
        return self._losses.divisors

    @property
    def shares(self) -> set[cst.BaseExpression]:
        """Sums of the data alone by which a sum is divided."""
        return self._losses.shares

    # --- what is added ------------------------------------------------------------------------------------------------

    @cached_property
    def _added(self) -> tuple[Value, ...]:
        """What `add_loss` and activity regularisers add."""
        return tuple(value for _, value in self._additions())

    def _additions(self) -> Iterator[tuple[cst.CSTNode, Value]]:
        for call in self._origins.index.calls:
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_loss" and call.args:
                for value in self._objects.added(call.args[0].value):
                    yield call, value
            given = argument(call, "activity_regularizer")
            regularizes = (self._origins.names.api(call.func) or "").endswith(".ActivityRegularization")
            if regularizes or (given is not None and not is_off(self._origins, given.value)):
                yield call, batch.UNKNOWN  # whether it is divided by the batch's size depends on Keras' version

    @cached_property
    def _regularized(self) -> bool:
        """Whether weights are regularised: their term is one of each rank, whatever the batch's loss is."""
        return any(
            a.keyword is not None and a.keyword.value.endswith("_regularizer") and not is_off(self._origins, a.value)
            for c in self._origins.index.calls
            for a in c.args
        )

    # --- what is not exact --------------------------------------------------------------------------------------------

    def problem(self, compiled: Compile) -> Problem | None:
        """Why averaging is not exact for a model's loss; None where it is, or where adding up is."""
        if self.of(compiled).reduction in {Reduction.MEAN, Reduction.SUM}:
            return self._weighted(compiled)
        if (mask := self._mask(self._given(compiled))) is not None:
            reason = (
                "a mask may reach the loss here: Keras divides by the elements that it leaves, which differ by worker"
            )
            return Problem("TFDP090", mask, reason, "multiply the loss by the mask in a loss function of your own")
        added = next((n for n, v in self._additions() if v.reduction not in {Reduction.MEAN, Reduction.CONSTANT}), None)
        if added is not None:
            return _not_a_mean(added)
        own = self._own(compiled)
        place = own.name if own is not None else self._given(compiled) or compiled.call
        self._losses.cause = None
        unknown = self._causes.get(compiled) if own is None else (self.of(compiled), self._losses.cause)[1]
        return Problem.since(self._origins.index, "TFDP090", place, NOT_KNOWN, unknown, _NEXT)

    def _weighted(self, compiled: Compile) -> Problem | None:
        """Weights of examples, by the mean of which Keras multiplies a loss that is one number for the batch."""
        fits = [f for f in self._fits if compiled in f.compiles]
        given = [argument(f.call, n, p if f.method != "fit" else None) for f in fits for n, p in _WEIGHTS.items()]
        for call in self._origins.index.calls:
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _KERAS_STEPS:
                given.append(argument(call, "sample_weight", _KERAS_STEPS[call.func.attr.value]))
        weights: list[cst.CSTNode] = [g.value for g in given if g is not None and not is_off(self._origins, g.value)]
        weights += self._weights_in_datasets
        own = [f for f in self.functions if f.name.value != "compute_loss"]
        single = [self._of_each_pair(f) for f in own] + [self._losses.value(each.body) for each in self._lambdas]
        if not weights or not any(v is not None and v.reduction in _NUMBERS for v in single):
            return None
        return Problem("TFDP090", weights[0], _ONE_NUMBER, _EACH)

    @property
    def _weights_in_datasets(self) -> list[cst.CSTNode]:
        """The third of the arrays of which a dataset is made: what `fit` takes for weights."""
        slices = [c for c in self._origins.index.calls if self._origins.kind(c.func) is Kind.DATASET and c.args]
        made = [o.node for c in slices for o in self._origins.of(c.args[0].value) if not o.path]
        mapped = [c for c in self._origins.index.calls if last_name(c.func) == "map" and c.args]
        for origin in (o for c in mapped for o in self._origins.of(c.args[0].value)):
            if isinstance(origin.node, cst.Lambda):
                made.append(origin.node.body)
            elif isinstance(origin.node, cst.FunctionDef):
                made += [r.value for r in self._origins.index.returns[origin.node] if r.value is not None]
        return [m.elements[2].value for m in made if isinstance(m, cst.Tuple) and len(m.elements) == 3]


def _entry(table: cst.CSTNode) -> cst.BaseExpression | None:
    if isinstance(table, cst.Dict):
        entries = [e for e in table.elements if isinstance(e, cst.DictElement)]
        return next(
            (e.value for e in entries if isinstance(e.key, cst.SimpleString) and e.key.evaluated_value == "loss"), None
        )
    given = argument(table, "loss") if isinstance(table, cst.Call) else None
    return given.value if given is not None else None


def _not_a_mean(added: cst.CSTNode) -> Problem:
    if isinstance(added, cst.Call) and isinstance(added.func, cst.Attribute) and added.func.attr.value == "add_loss":
        reason = "cannot tell whether what is added to the loss here is a mean over the batch"
        return Problem("TFDP090", added, reason, "add tf.reduce_mean over the examples")
    reason = "Keras 3 adds what an activity regulariser gives as a sum over the batch, Keras 2 as a mean"
    return Problem("TFDP090", added, reason, "call self.add_loss in a layer of your own, with a mean over the examples")
