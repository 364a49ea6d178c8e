"""Keras' own training: which models are compiled, and which are fitted, each with what it was compiled with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..apis import FITS
from ..program import Origins, argument, method, receiver

ON_BATCH = "train_on_batch"
# Arguments by which a call of an unknown object's `fit`, or `compile`, is taken for Keras'.
_FIT_ARGUMENTS = (
    *("epochs", "steps_per_epoch", "validation_data", "validation_split", "callbacks", "batch_size", "class_weight"),
    "initial_epoch",
)
_COMPILE_ARGUMENTS = ("optimizer", "loss", "metrics")


@dataclass(frozen=True)
class Compile:
    """`model.compile(…)` of what is, or is used as, a Keras model.

    `optimizer` is what is given as such, None where it is omitted (Keras then takes "rmsprop") or starred. `own` is the
    file's own method `compile` that the call runs, where the model's class has one: then the arguments are its own.
    """

    call: cst.Call
    model: cst.BaseExpression
    optimizer: cst.BaseExpression | None
    own: cst.FunctionDef | None = None


@dataclass(frozen=True)
class Fit:
    """`model.fit(…)`, by one of the methods in FITS, or `model.train_on_batch(…)`.

    `compiles` are all that the model may have been compiled by: none where that is not visible in this file, or where
    `model` is not known to be a Keras model and the call only looks like its `fit`. `step` is the file's own method
    `train_step` that runs for each batch, where the model's class has one.
    """

    call: cst.Call
    method: str
    model: cst.BaseExpression
    compiles: tuple[Compile, ...]
    step: cst.FunctionDef | None = None


class KerasTraining:
    """Answers for the whole file."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    @cached_property
    def compiles(self) -> tuple[Compile, ...]:
        """Every call of Keras' `compile`, in the order of the text."""
        return tuple(c for call in self._methods("compile") if (c := self._compile(call)) is not None)

    @cached_property
    def calls(self) -> tuple[Fit, ...]:
        """Every call of Keras' `fit`, or one that looks like it, in the order of the text."""
        return tuple(f for call in self._methods(*FITS) if (f := self._fit(call)) is not None)

    @cached_property
    def on_batches(self) -> tuple[Fit, ...]:
        """Every call of `train_on_batch`, in the order of the text."""
        return tuple(f for call in self._methods(ON_BATCH) if (f := self._fit(call)) is not None)

    @property
    def by_keras(self) -> tuple[Fit, ...]:
        """All calls by which Keras takes and applies gradients."""
        return (*self.calls, *self.on_batches)

    @cached_property
    def handed_models(self) -> tuple[cst.CSTNode, ...]:
        """Functions that make and compile a model, where they are passed to something outside the file.

        That may train the models: a search over hyperparameters, a wrapper with scikit-learn's methods.
        """
        fitted = {c for f in self.by_keras for c in f.compiles}
        makers = [self._origins.index.enclosing_function(c.call) for c in self.compiles if c not in fitted]
        return tuple(n for f in dict.fromkeys(makers) if f is not None for n in self._passed(f))

    def _passed(self, function: cst.FunctionDef) -> list[cst.CSTNode]:
        """Places that pass a function that this file never calls itself; its class, for a method of a tuner's."""
        index = self._origins.index
        owner = index.enclosing_class(function)
        if self._origins.below(owner, ("keras_tuner.", "kerastuner.")):
            return [function.name]
        if owner is not None or self._origins.calls_of(function):
            return []
        reads = [n for n in index.names[function.name.value] if isinstance(index.parents[n], cst.Arg)]
        return [n for n in reads if any(o.node is function for o in self._origins.of(n))]

    def _methods(self, *names: str) -> list[cst.Call]:
        """Calls of methods with one of the names, but of modules' functions (`re.compile`, `np.polynomial.fit`)."""
        return [c for c in self._origins.index.methods(*names) if not self._origins.called(c)]

    # --- one call -----------------------------------------------------------------------------------------------------

    def _compile(self, call: cst.Call) -> Compile | None:
        model, own = receiver(call), self._origins.function(call.func)
        if self._forwards(call):
            return None
        kinds = self._origins.kinds(self._model(model))
        looks = None in kinds and any(argument(call, k) is not None for k in _COMPILE_ARGUMENTS)
        fitted = None in kinds and any(self._same(model, receiver(c)) for c in self._methods(*FITS, ON_BATCH))
        if Kind.MODEL not in kinds and (own is not None or not (looks or fitted)):
            return None
        if own is not None:
            return Compile(call, model, self._origins.bind(call, own).get("optimizer"), own)
        given = argument(call, "optimizer", 0)
        return Compile(call, model, given.value if given is not None else None)

    def _forwards(self, call: cst.Call) -> bool:
        """`super().compile(…)` in a model's own `compile`: a part of that method, whose calls are asked instead."""
        function = self._origins.index.enclosing_function(call)
        inside = function is not None and function.name.value == method(call)
        return inside and self._origins.is_super(receiver(call))

    def _fit(self, call: cst.Call) -> Fit | None:
        if self._origins.function(call.func) is not None:
            return None
        name, model = method(call), receiver(call)
        kinds = self._origins.kinds(self._model(model))
        compiles = tuple(c for c in self.compiles if self._same(c.model, model))
        looks = None in kinds and any(argument(call, k) is not None for k in _FIT_ARGUMENTS)
        if Kind.MODEL in kinds or compiles or looks or name == ON_BATCH:
            return Fit(call, name, model, compiles, self._step(model))
        return None

    # --- models -------------------------------------------------------------------------------------------------------

    def _model(self, node: cst.BaseExpression) -> cst.CSTNode:
        """The receiver; of `super()` the class around it."""
        owner = self._origins.index.class_around(node) if self._origins.is_super(node) else None
        return owner or node

    def _objects(self, node: cst.BaseExpression) -> set[cst.CSTNode]:
        """What may have made a model: calls, for instances of a class of this file the class."""
        model = self._model(node)
        return {model} if isinstance(model, cst.ClassDef) else self._origins.makers(model)

    def _same(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether two expressions may be one model."""
        found = (self._objects(one), self._objects(other))
        if found[0] & found[1]:
            return True
        if all(made and all(isinstance(m, cst.Call | cst.ClassDef) for m in made) for made in found):
            return False
        return self._origins.index.scope_of(one) is self._origins.index.scope_of(other) and one.deep_equals(other)

    def _step(self, node: cst.BaseExpression) -> cst.FunctionDef | None:
        owners = [o for o in self._objects(node) if isinstance(o, cst.ClassDef)]
        return next((m for o in owners if (m := self._origins.method(o, "train_step")) is not None), None)
