"""What the losses of fitted models are over the batch: those given to `compile`, and what layers add to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import libcst as cst

from ...catalogue import KINDS, Kind
from ..apis import KERAS_LOSS_WEIGHTS, LOSS_NAMES, WEIGHT_POSITIONS
from ..keras import Compile, Fit, is_name
from ..program import (
    Origins,
    Problem,
    Unknown,
    argument,
    backward,
    entered,
    is_none,
    is_off,
    method,
    params_of,
    within_itself,
)
from . import batch_values as batch
from .batch_values import Reduction, Value
from .causes import NOT_KNOWN, cause_of_loss
from .loss import Losses
from .masks import Masks
from .objects import mean_of

_LOSSES = frozenset({Kind.LOSS_FUNCTION, Kind.LOSS_CLASS})  # of a class Keras makes the object
_NAMES = LOSS_NAMES | {n.rpartition(".")[2] for n, kind in KINDS.items() if kind in _LOSSES}
_Function = cst.FunctionDef | cst.Lambda
_ONE_NUMBER = (
    "the loss is one number for the batch, which Keras multiplies by the mean of these weights; that differs by worker"
)
_EACH = "let the loss function return one value for each example: Keras weights them and takes the mean"
_ADDED = "cannot tell whether what is added to the loss here is a mean over the batch"
_MEAN = "add tf.reduce_mean over the examples"
_REGULARISED = "Keras 3 adds what an activity regulariser gives as a sum over the batch, Keras 2 as a mean"
_OWN_LAYER = "call self.add_loss in a layer of your own, with a mean over the examples"
_NEXT = "give compile a loss that is a mean over the batch's examples, or one value for each of them"


class KerasLosses:
    """Answers for the fitted models of a file."""

    def __init__(self, origins: Origins, fits: Iterable[Fit], losses: Callable[[], Losses]) -> None:
        """`losses` is asked only when everything else is known: it may ask back for a model's loss."""
        self._origins, self._fits, self._make = origins, tuple(fits), losses
        self._known: dict[Compile, Value] = {}
        self._causes: dict[Compile, Unknown | None] = {}  # why the loss of a compile is not understood
        self._cause: Unknown | None = None  # the same of what is looked at
        self.functions: set[_Function] = set()  # that Keras calls for a loss

    @cached_property
    def losses(self) -> Losses:
        """How the values of these losses depend on the batch.

        The functions that Keras calls get labels and outputs, whatever else calls them; those that they call, what they
        are given there.
        """
        index, compiles = self._origins.index, dict.fromkeys(c for f in self._fits for c in f.compiles)
        called = [n for c in compiles for n in self._each(self._given(c)) if isinstance(n, cst.FunctionDef)]
        run = entered(self._origins, called)
        only = frozenset(c for c in index.calls if index.enclosing_function(c) in run)
        self._origins.narrow(only, frozenset(called))
        found = self._make()
        for function in index.functions:
            if function.name.value in {"call", "compute_loss"} and index.enclosing_class(function) is not None:
                found.columns.update(params_of(function)[1:])
        return found

    @within_itself((None,))
    def _each(self, node: cst.BaseExpression | None) -> Sequence[cst.CSTNode | None]:
        """A loss, or each of a list or table of them; None for what is not followed."""
        found: list[cst.CSTNode | None] = []
        for origin in self._origins.of(node) if node is not None else ():
            made = origin.node if not origin.path else None
            if isinstance(made, cst.List | cst.Tuple | cst.Dict):
                found += [each for element in made.elements for each in self._each(element.value)]
            elif made is None or not is_none(self._origins, made):
                found.append(made)
        return found

    # --- the loss of one compile --------------------------------------------------------------------------------------

    def of(self, compiled: Compile) -> Value:
        """The loss with which a model is trained by Keras' own step."""
        if (own := self._own(compiled)) is None:
            return self._of_keras(compiled)
        self.functions.add(own)
        return self.losses.settled(lambda: batch.as_loss(self._returned(own)))

    def _returned(self, function: _Function) -> Value:
        return batch.join(self.losses.value(r) for r in self._origins.index.returned(function))

    def _classes(self, fit: Fit) -> list[cst.ClassDef]:
        """The file's own classes that the fitted model may be of."""
        made = (self._origins.constructed(o.node) or o.node for o in self._origins.of(fit.model))
        return [m for m in made if isinstance(m, cst.ClassDef)]

    def _own(self, compiled: Compile) -> cst.FunctionDef | None:
        """The `compute_loss` of the model's class, which Keras' step calls for the whole loss."""
        owners = [m for f in self._fits if compiled in f.compiles for m in self._classes(f)]
        return next((self._origins.method(m, "compute_loss") for m in owners), None)

    def _of_keras(self, compiled: Compile) -> Value:
        """The loss that Keras computes for a model: all that `compile` was given, and what is added."""
        if compiled not in self._known:
            self._known[compiled] = batch.UNKNOWN
            self._known[compiled] = self._whole(compiled)
            self._causes[compiled] = self._cause
        return self._known[compiled]

    def of_model(self, model: cst.CSTNode) -> Value:
        """What Keras computes for `self` in a model's own step: of all that compile a model of the class."""
        owner = self._origins.class_of(model)
        if self._origins.is_super(model):
            owner = self._origins.index.class_around(model)
        fits = [(f, self._classes(f)) for f in self._fits]
        mine = [f for f, made in fits if owner is None or any(self._origins.descends(m, owner) for m in made)]
        compiles = dict.fromkeys(c for f in mine for c in f.compiles)
        found = [self._of_keras(c) for c in compiles]
        weighted = any(self._weighted(c) is not None for c in compiles)
        return batch.UNKNOWN if weighted or not found else batch.join(found)

    def _whole(self, compiled: Compile) -> Value:
        given, self._cause = self._given(compiled), None
        terms = [self._of_loss(node) if node is not None else batch.UNKNOWN for node in self._each(given)]
        terms += [value for _, value, _ in self._added]
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
        own = [m for m in made if isinstance(m, _Function) and batch.is_number(self._of_pair(m))]
        return self._masks.left if not made or len(own) < len(made) else None

    def _given(self, compiled: Compile) -> cst.BaseExpression | None:
        if compiled.own is not None:
            return self._origins.bind(compiled.call, compiled.own).get("loss")
        found = argument(compiled.call, "loss", 1)
        if found is None and any(a.star for a in compiled.call.args):
            tables = [o.node for a in compiled.call.args if a.star for o in self._origins.of(a.value)]
            return next((v for t in tables if (v := _entry(t)) is not None), None)
        return found.value if found is not None else None

    def _of_loss(self, node: cst.CSTNode) -> Value:
        self.losses.cause = None
        found = self._read(node)
        if found.reduction is Reduction.UNKNOWN and self._cause is None:
            self._cause = self.losses.cause or cause_of_loss(self._origins, node)
        return found

    def _read(self, node: cst.CSTNode) -> Value:
        if isinstance(node, cst.SimpleString):
            return batch.MEAN if node.evaluated_value in _NAMES else batch.UNKNOWN
        if isinstance(node, _Function):
            return self.losses.settled(lambda: mean_of(self._of_pair(node)))
        if isinstance(node, cst.Call):
            return self._of_object(node)
        catalogued = isinstance(node, cst.Name | cst.Attribute) and self._origins.kind(node) in _LOSSES
        return batch.MEAN if catalogued or is_name(self._origins, node) else batch.UNKNOWN

    def _of_pair(self, function: _Function) -> Value:
        """What a loss function of the file gives for labels and outputs; Keras takes the mean of it."""
        self.functions.add(function)
        params = params_of(function)[self._origins.takes_self(function) :]
        self.losses.columns.update(params[:2])
        self.losses.labels.update(params[:1])
        self.losses.settings.update(params[2:])
        return self._returned(function)

    def _of_object(self, call: cst.Call) -> Value:
        if self._origins.kind(call.func) is Kind.LOSS_CLASS:
            starred = any(a.star for a in call.args)
            return batch.UNKNOWN if starred else self.losses.objects.reduced(call, batch.DEEP_ROWS)
        if self._origins.called(call) in {"keras.losses.get", "keras.losses.deserialize"}:
            return batch.MEAN
        owner = self._origins.constructed(call)
        if owner is None:
            return batch.MEAN if is_name(self._origins, call) else batch.UNKNOWN
        own = self._origins.method(owner, "call") or self._origins.method(owner, "__call__")
        above = [self._origins.names.api(b.value) for b in owner.bases]
        if own is None or (owner.bases and above != ["keras.losses.Loss"]):
            return batch.UNKNOWN

        def reduced() -> Value:
            inner = self._of_pair(own)
            return self.losses.objects.own_reduced(owner, call, inner) if owner.bases else mean_of(inner)

        found = self.losses.settled(reduced)
        return found if found.reduction in batch.NUMBERS else batch.UNKNOWN

    @cached_property
    def _masks(self) -> Masks:
        return Masks(self._origins)

    @property
    def made_of(self) -> frozenset[cst.CSTNode]:
        """All that the file's own loss functions compute."""
        own = (f for f in self.functions if isinstance(f, cst.FunctionDef))
        return backward(self._origins, [r for f in own for r in self._origins.index.returned(f)])

    @property
    def reconsidered(self) -> list[cst.Call]:
        """Of the compiled losses those that have become others by the sums that later ones share."""
        if not self.losses.totals.shared:
            return []
        return [c.call for c, known in self._known.items() if self._whole(c).reduction is not known.reduction]

    # --- what is added ------------------------------------------------------------------------------------------------

    @cached_property
    def _added(self) -> list[tuple[cst.Call, Value, Unknown | None]]:
        """What `add_loss` and activity regularisers add, and why it is not understood."""
        found: list[tuple[cst.Call, Value, Unknown | None]] = []
        for call in self._origins.index.methods("add_loss"):
            self.losses.cause = None
            values = self.losses.objects.added(call.args[0].value) if call.args else []
            found += [(call, value, self.losses.cause) for value in values]
        return [*found, *((c, batch.UNKNOWN, None) for c in self.losses.objects.regularized)]

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
        if self.of(compiled).reduction in batch.NUMBERS:
            return self._weighted(compiled)
        if (mask := self._mask(self._given(compiled))) is not None:
            reason = (
                "a mask may reach the loss here: Keras divides by the elements that it leaves, which differ by worker"
            )
            return Problem("TFDP090", mask, reason, "multiply the loss by the mask in a loss function of your own")
        added = (a for a in self._added if a[1].reduction not in {Reduction.MEAN, Reduction.CONSTANT})
        if (found := next(added, None)) is not None:
            call, _, because = found
            told = (_ADDED, because, _MEAN) if method(call) == "add_loss" else (_REGULARISED, because, _OWN_LAYER)
            return Problem.since(self._origins.index, "TFDP090", call, *told)
        own = self._own(compiled)
        place = own.name if own is not None else self._given(compiled) or compiled.call
        self.losses.cause = None
        unknown = self._causes.get(compiled) if own is None else (self.of(compiled), self.losses.cause)[1]
        return Problem.since(self._origins.index, "TFDP090", place, NOT_KNOWN, unknown, _NEXT)

    def _weighted(self, compiled: Compile) -> Problem | None:
        """Weights of examples, by the mean of which Keras multiplies a loss that is one number for the batch."""
        fits = [f for f in self._fits if compiled in f.compiles]
        places = WEIGHT_POSITIONS.items()
        given = [argument(f.call, n, p if f.method != "fit" else None) for f in fits for n, p in places]
        steps = self._origins.index.methods(*KERAS_LOSS_WEIGHTS)
        given += [argument(c, "sample_weight", KERAS_LOSS_WEIGHTS[method(c)]) for c in steps]
        weights: list[cst.CSTNode] = [g.value for g in given if g is not None and not is_off(self._origins, g.value)]
        weights += self._weights_in_datasets
        own = [f for f in self.functions if isinstance(f, cst.Lambda) or f.name.value != "compute_loss"]
        single = any(self._of_pair(f).reduction in batch.NUMBERS for f in own)
        return Problem("TFDP090", weights[0], _ONE_NUMBER, _EACH) if weights and single else None

    @property
    def _weights_in_datasets(self) -> list[cst.CSTNode]:
        """The third of the arrays of which a dataset is made: what `fit` takes for weights."""
        slices = [c for c in self._origins.index.calls if self._origins.kind(c.func) is Kind.DATASET and c.args]
        made = [o.node for c in slices for o in self._origins.of(c.args[0].value) if not o.path]
        mapped = [c.args[0].value for c in self._origins.index.methods("map") if c.args]
        functions = [o.node for given in mapped for o in self._origins.of(given) if isinstance(o.node, _Function)]
        made += [r for f in functions for r in self._origins.index.returned(f)]
        return [m.elements[2].value for m in made if isinstance(m, cst.Tuple) and len(m.elements) == 3]


def _entry(table: cst.CSTNode) -> cst.BaseExpression | None:
    if isinstance(table, cst.Dict):
        entries = [e for e in table.elements if isinstance(e, cst.DictElement) and isinstance(e.key, cst.SimpleString)]
        return next((e.value for e in entries if getattr(e.key, "evaluated_value", None) == "loss"), None)
    given = argument(table, "loss") if isinstance(table, cst.Call) else None
    return given.value if given is not None else None
