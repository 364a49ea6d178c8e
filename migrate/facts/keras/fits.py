"""Keras' own training: which models are compiled, and which are fitted, each with what it was compiled with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, argument
from ..training import Gradient, is_averaged

FITS = frozenset({"fit", "fit_generator"})
ON_BATCH = "train_on_batch"
_FIT_ARGUMENTS = (
    "epochs",
    "steps_per_epoch",
    "validation_data",
    "validation_split",
    "callbacks",
    "batch_size",
    "class_weight",
    "initial_epoch",
)
_EXAMPLES = frozenset({"x", "y", "sample_weight"})  # of train_on_batch
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
        found = [self._compile(call, func) for call, func in self._methods("compile")]
        return tuple(c for c in found if c is not None)

    @cached_property
    def fits(self) -> tuple[Fit, ...]:
        """Every call of Keras' `fit`, or one that looks like it, in the order of the text."""
        return tuple(f for c, func in self._methods(*FITS) if (f := self._fit(c, func)) is not None)

    @cached_property
    def on_batches(self) -> tuple[Fit, ...]:
        """Every call of `train_on_batch`, in the order of the text."""
        return tuple(f for c, func in self._methods(ON_BATCH) if (f := self._fit(c, func)) is not None)

    @cached_property
    def handed(self) -> tuple[cst.CSTNode, ...]:
        """Functions that make and compile a model, where they are passed to something outside the file.

        That may train the models: a search over hyperparameters, a wrapper with scikit-learn's methods.
        """
        fitted = {c for f in (*self.fits, *self.on_batches) for c in f.compiles}
        makers = [self._origins.index.enclosing_function(c.call) for c in self.compiles if c not in fitted]
        return tuple(n for f in dict.fromkeys(makers) if f is not None for n in self._passed(f))

    def _passed(self, function: cst.FunctionDef) -> list[cst.CSTNode]:
        """Places that pass a function that this file never calls itself; its class, for a method of a tuner's."""
        index = self._origins.index
        owner = index.enclosing_class(function)
        above = self._origins.bases(owner) if owner is not None else []
        if any((base or "").startswith(("keras_tuner.", "kerastuner.")) for base in above):
            return [function.name]
        if owner is not None or self._origins.calls_of(function):
            return []
        reads = [n for n in index.names[function.name.value] if isinstance(index.parents[n], cst.Arg)]
        return [n for n in reads if any(o.node is function for o in self._origins.of(n))]

    def _methods(self, *names: str) -> list[tuple[cst.Call, cst.Attribute]]:
        """Calls of methods with one of the names, but of modules' functions (`re.compile`, `np.polynomial.fit`)."""
        calls = [(c, c.func) for c in self._origins.index.calls if isinstance(c.func, cst.Attribute)]
        return [(c, f) for c, f in calls if f.attr.value in names and not self._origins.names.api(f)]

    # --- one call -----------------------------------------------------------------------------------------------------

    def _compile(self, call: cst.Call, func: cst.Attribute) -> Compile | None:
        if self._forwards(call, func):
            return None
        own = self._origins.function(func)
        kinds = self._origins.kinds(self._model(func.value))
        looks = None in kinds and any(argument(call, k) is not None for k in _COMPILE_ARGUMENTS)
        fitted = None in kinds and any(self._same(func.value, f.value) for _, f in self._methods(*FITS, ON_BATCH))
        if Kind.MODEL not in kinds and (own is not None or not (looks or fitted)):
            return None
        given = argument(call, "optimizer", 0)
        if own is not None:
            return Compile(call, func.value, self._origins.bind(call, own).get("optimizer"), own)
        return Compile(call, func.value, given.value if given is not None else None)

    def _forwards(self, call: cst.Call, func: cst.Attribute) -> bool:
        """`super().compile(…)` in a model's own `compile`: a part of that method, whose calls are asked instead."""
        function = self._origins.index.enclosing_function(call)
        inside = function is not None and function.name.value == func.attr.value
        return inside and self._origins.is_super(func.value)

    def _fit(self, call: cst.Call, func: cst.Attribute) -> Fit | None:
        if self._origins.function(func) is not None:
            return None
        kinds = self._origins.kinds(self._model(func.value))
        compiles = tuple(c for c in self.compiles if self._same(c.model, func.value))
        looks = None in kinds and any(argument(call, k) is not None for k in _FIT_ARGUMENTS)
        looks = looks or func.attr.value == ON_BATCH
        if Kind.MODEL not in kinds and not compiles and not looks:
            return None
        return Fit(call, func.attr.value, func.value, compiles, self._step(func.value))

    # --- models -------------------------------------------------------------------------------------------------------

    def _model(self, node: cst.BaseExpression) -> cst.CSTNode:
        """The receiver; of `super()` the class around it."""
        function = self._origins.index.enclosing_function(node) if self._origins.is_super(node) else None
        owner = self._origins.index.enclosing_class(function) if function is not None else None
        return owner or node

    def _objects(self, node: cst.BaseExpression) -> set[cst.CSTNode]:
        """What may have made a model: calls, for instances of a class of this file the class."""
        model = self._model(node)
        if isinstance(model, cst.ClassDef):
            return {model}
        return {self._origins.constructed(o.node) or o.node for o in self._origins.of(model) if not o.path}

    def _same(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether two expressions may be one model."""
        found = (self._objects(one), self._objects(other))
        if found[0] & found[1]:
            return True
        if all(made and all(isinstance(m, cst.Call | cst.ClassDef) for m in made) for made in found):
            return False
        scopes = {self._origins.index.scope_of(node) for node in (one, other)}
        return len(scopes) == 1 and one.deep_equals(other)

    def _step(self, node: cst.BaseExpression) -> cst.FunctionDef | None:
        owners = [o for o in self._objects(node) if isinstance(o, cst.ClassDef)]
        steps = [m for o in owners if (m := self._origins.method(o, "train_step")) is not None]
        return steps[0] if steps else None


def fed(fit: Fit, origins: Origins) -> Gradient:
    """The gradient that `train_on_batch` takes of what it is given."""
    given = tuple(a.value for a in fit.call.args if a.keyword is None or a.keyword.value in _EXAMPLES)
    optimizers = [c.optimizer for c in fit.compiles]
    averaged = bool(optimizers) and all(o is not None and is_averaged(origins, o) for o in optimizers)
    return Gradient(fit.call, fit.model, None, None, averaged, (), (), fed=given)
