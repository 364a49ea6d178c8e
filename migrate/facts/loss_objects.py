"""Keras' loss objects: how they are made, how they are called, and what elsewhere in a file changes what they give."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import libcst as cst

from tfdp.migrate.catalogue import Kind
from tfdp.migrate.facts import batch_values as batch
from tfdp.migrate.facts.batch_values import Reduction, Value
from tfdp.migrate.facts.literals import ints, is_off, plain, text
from tfdp.migrate.facts.origins import Origins, argument
from tfdp.migrate.facts.tensor_calls import Evaluate

_MEANS = frozenset({"sum_over_batch_size", "auto", "mean"})
_MASK_POSITION = 4  # Embedding(input_dim, output_dim, initializer, regularizer, …): from here on mask_zero may be one


class LossObjects:
    """Calls of Keras' loss objects."""

    def __init__(self, origins: Origins, value: Evaluate) -> None:
        self._origins, self._value = origins, value

    def of(self, call: cst.Call, made: cst.Call) -> Value | None:
        """The result of calling a loss object, given the call that made it."""
        weighted = any(
            a.keyword is not None and a.keyword.value not in {"y_true", "y_pred"} and not is_off(self._origins, a.value)
            for a in call.args
        )
        extra = len(call.args) > 2 and not weighted and any(a.keyword is None for a in call.args[2:])
        if self._masks or weighted or extra or any(a.star for a in (*call.args, *made.args)):
            return batch.UNKNOWN
        over = batch.elementwise(self._value(a.value) for a in call.args[:2])
        if over is None or over.reduction is not Reduction.PER_EXAMPLE:
            return over
        return self._reduced(made, over)

    def of_own(self, call: cst.Call, made: cst.Call, owner: cst.ClassDef, inner: Value | None) -> Value | None:
        """The result of calling an object of a subclass of `tf.keras.losses.Loss`, whose `call` gives `inner`.

        Keras takes the mean of one value per example; of a number, that is the number.
        """
        bases = [self._origins.names.api(b.value) for b in owner.bases]
        plainly_called = len(call.args) == 2 and not any(a.star for a in call.args)
        if inner is None or bases != ["keras.losses.Loss"] or not plainly_called or self._masks:
            return batch.UNKNOWN if inner is not None else None
        over = batch.elementwise(self._value(a.value) for a in call.args)
        if over is None or over.reduction is not Reduction.PER_EXAMPLE or not self._keeps_reduction(owner, made):
            return batch.UNKNOWN if over is not None else None
        if inner.reduction is Reduction.PER_EXAMPLE:
            return batch.MEAN if not inner.power and not inner.opaque else batch.UNKNOWN
        return inner if inner.reduction in {Reduction.MEAN, Reduction.SUM} else batch.UNKNOWN

    def _keeps_reduction(self, owner: cst.ClassDef, made: cst.Call) -> bool:
        """Whether the class and what constructs it leave the reduction as it is: a mean."""
        own = self._origins.method(owner, "__init__")
        if own is None:
            return all(a.keyword is not None and a.keyword.value == "name" for a in made.args)
        index = self._origins.index
        for call in index.calls:
            inside = index.enclosing_function(call) is own
            if inside and isinstance(call.func, cst.Attribute) and call.func.attr.value == "__init__":
                kept = all(a.keyword is not None and a.keyword.value == "name" for a in call.args)
                return kept and self._origins.names.api(getattr(call.func.value, "func", call)) == "builtins.super"
        return False

    def _reduced(self, made: cst.Call, over: Value) -> Value:
        """The reduction with which a loss object is made, named or at any position."""
        ignored, axis = argument(made, "ignore_class"), argument(made, "axis")
        given = [a.value for a in made.args if a.keyword is None]
        if ignored is not None and not is_off(self._origins, ignored.value):
            return batch.UNKNOWN
        sparse = (self._origins.names.api(made.func) or "").endswith(".SparseCategoricalCrossentropy")
        if sparse and len(given) > 1 and not is_off(self._origins, given[1]):
            return batch.UNKNOWN
        if axis is not None and (ints(self._origins, axis.value) or (0,))[0] in {0, -2, -3}:
            return batch.UNKNOWN
        texts = [text(self._origins, a) for a in given if not plain(self._origins, a)]
        named = argument(made, "reduction")
        reduction = text(self._origins, named.value) if named is not None else next(iter(texts), "auto")
        if reduction is None or None in texts:
            return batch.UNKNOWN
        if reduction in _MEANS:
            return batch.MEAN
        if reduction == "sum":
            return batch.total(over, 1, over.given)
        return replace(over, deep=False, opaque=False) if reduction == "none" else batch.UNKNOWN

    @cached_property
    def _masks(self) -> bool:
        """Whether layers hide elements: loss objects then divide by the number of those that are left."""
        return any(self._makes_mask(call) for call in self._origins.index.calls) or any(
            f.name.value == "compute_mask" for f in self._origins.index.functions
        )

    def _makes_mask(self, call: cst.Call) -> bool:
        api = self._origins.names.api(call.func) or ""
        given = argument(call, "mask_zero")
        if given is None and api == "keras.layers.Embedding" and any(a.star == "**" for a in call.args):
            return True
        if given is None and api == "keras.layers.Embedding":
            given = next(iter([a for a in call.args if a.keyword is None][_MASK_POSITION:]), None)
        masking = self._origins.kind(call.func) is Kind.MASKING
        return masking or (given is not None and not is_off(self._origins, given.value))

    @cached_property
    def adds_losses(self) -> bool:
        """Whether a model's losses may be of the batch: `add_loss`, activity regularisers."""
        for call in self._origins.index.calls:
            given = argument(call, "activity_regularizer")
            if given is not None and not is_off(self._origins, given.value):
                return True
            if (self._origins.names.api(call.func) or "").endswith(".ActivityRegularization"):
                return True
        return bool(self._origins.index.attributes["add_loss"])
