"""Keras' loss objects: how they are made, how they are called, and what elsewhere in a file changes what they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import libcst as cst

from ..apis import LOSS_OPERANDS, MEAN_REDUCTIONS
from ..program import Origins, argument, ints, is_none, is_off, plain, receiver, text, within_itself
from . import batch_values as batch
from .batch_values import Reduction, Value
from .masks import Masks
from .tensor_calls import Evaluate


def mean_of(value: Value) -> Value:
    """What Keras makes of a loss function's result: the mean of one value per example; a number stays what it is."""
    if value.reduction is Reduction.PER_EXAMPLE:
        return batch.UNKNOWN if value.power or value.opaque or value.guessed else batch.MEAN
    found = batch.as_loss(value)
    return found if found.reduction in batch.NUMBERS else batch.UNKNOWN


class LossObjects:
    """Calls of Keras' loss objects."""

    def __init__(self, origins: Origins, value: Evaluate) -> None:
        self._origins, self._value = origins, value

    def of(self, call: cst.Call, made: cst.Call) -> Value:
        """The result of calling a loss object, given the call that made it."""
        named = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
        others = [v for name, v in named.items() if name not in LOSS_OPERANDS and not is_off(self._origins, v)]
        if others or any(a.star for a in (*call.args, *made.args)):
            return batch.UNKNOWN
        # Weights of examples: Keras divides by the number of examples, not by the sum of the weights.
        given = [a.value for a in call.args[:3] if a.keyword is None]
        given += [v for name, v in named.items() if name in LOSS_OPERANDS and not is_off(self._origins, v)]
        over = batch.elementwise(self._value(v) for v in given)
        if over.reduction is not Reduction.PER_EXAMPLE:
            return over
        found = self.reduced(made, over)
        # A mask is one more factor of each example's loss; a mean is divided by the number of those that are left.
        return batch.UNKNOWN if self._masks and found.reduction is not Reduction.PER_EXAMPLE else found

    def of_own(self, call: cst.Call, made: cst.Call, owner: cst.ClassDef, inner: Value) -> Value:
        """The result of calling an object of a subclass of `tf.keras.losses.Loss`, whose `call` gives `inner`.

        Keras takes the mean of one value per example unless told otherwise; of a number, that is the number.
        """
        bases = [self._origins.names.api(b.value) for b in owner.bases]
        plainly_called = len(call.args) == 2 and not any(a.star for a in call.args)
        over = batch.elementwise(self._value(a.value) for a in call.args)
        if batch.NOTHING in {inner, over}:
            return batch.NOTHING
        known = bases == ["keras.losses.Loss"] and plainly_called and not self._masks
        if not known or over.reduction is not Reduction.PER_EXAMPLE:
            return batch.UNKNOWN
        return self.own_reduced(owner, made, inner)

    def own_reduced(self, owner: cst.ClassDef, made: cst.Call, inner: Value) -> Value:
        """What an object of the file's own class makes of what its `call` gives."""
        reduction = self._own_reduction(owner, made)
        if reduction in MEAN_REDUCTIONS:
            return mean_of(inner)
        if reduction is None or inner.opaque or inner.power:
            return batch.UNKNOWN
        if reduction == "sum" and inner.reduction is Reduction.PER_EXAMPLE:
            return batch.total(inner, 1, inner.given)
        return inner if reduction == "none" else batch.UNKNOWN

    def _own_reduction(self, owner: cst.ClassDef, made: cst.Call) -> str | None:
        """The reduction that Keras' constructor gets from the class and from what constructs it; None if not seen."""
        index = self._origins.index
        if index.attributes["reduction"]:
            return None  # it may be set later
        if (own := self._origins.method(owner, "__init__")) is None:
            return self._named_reduction(made.args)
        above = [c for c in index.methods("__init__") if index.enclosing_function(c) is own]
        if len(above) != 1 or not self._origins.is_super(receiver(above[0])):
            return None
        passed = [a for a in above[0].args if a.star == "**"]
        given = [a for a in above[0].args if a not in passed]
        if passed:
            rest = own.params.star_kwarg
            names = {a.value.value if isinstance(a.value, cst.Name) else None for a in passed}
            if rest is None or names != {rest.name.value}:
                return None
            named = {p.name.value for p in (*own.params.params, *own.params.kwonly_params)}
            given += [a for a in made.args if a.star or (a.keyword is not None and a.keyword.value not in named)]
        return self._named_reduction(given)

    def _named_reduction(self, given: Sequence[cst.Arg]) -> str | None:
        """Of the arguments of the constructor, all by name, that of the reduction."""
        named = {a.keyword.value: a.value for a in given if a.keyword is not None}
        if len(named) < len(given) or named.keys() - {"name", "reduction"}:
            return None
        return self._text(named["reduction"]) if "reduction" in named else "auto"

    def _text(self, reduction: cst.BaseExpression) -> str | None:
        """Keras 3 takes None for "none"."""
        return "none" if is_none(self._origins, reduction) else text(self._origins, reduction)

    def reduced(self, made: cst.Call, over: Value) -> Value:
        """The reduction with which a loss object is made, named or at any position."""
        ignored, axis = argument(made, "ignore_class"), argument(made, "axis")
        given = [a.value for a in made.args if a.keyword is None]
        if ignored is not None and not is_off(self._origins, ignored.value):
            return batch.UNKNOWN
        sparse = self._origins.called(made).endswith(".SparseCategoricalCrossentropy")
        if sparse and len(given) > 1 and not is_off(self._origins, given[1]):
            return batch.UNKNOWN
        if axis is not None and (ints(self._origins, axis.value) or (0,))[0] in {0, -2, -3}:
            return batch.UNKNOWN
        texts = [text(self._origins, a) for a in given if not plain(self._origins, a)]
        named = argument(made, "reduction")
        reduction = self._text(named.value) if named is not None else next(iter(texts), "auto")
        if reduction is None or None in texts:
            return batch.UNKNOWN
        if reduction in MEAN_REDUCTIONS:
            return batch.MEAN
        # Of values without another axis these losses take the mean over the batch, whatever they are told.
        each = replace(over, averaged=not over.deep and "ategorical" not in self._origins.called(made))
        if reduction == "sum":
            return batch.total(each, 1, over.given)
        return replace(each, deep=False, opaque=False) if reduction == "none" else batch.UNKNOWN

    @cached_property
    def _masks(self) -> bool:
        """Whether layers hide elements: loss objects then divide by the number of those that are left."""
        return bool(Masks(self._origins).made)

    @cached_property
    def regularized(self) -> tuple[cst.Call, ...]:
        """The calls that make activity regularisers: a term whose size depends on Keras' version."""

        def makes(call: cst.Call) -> bool:
            given = argument(call, "activity_regularizer")
            named = self._origins.called(call).endswith(".ActivityRegularization")
            return named or (given is not None and not is_off(self._origins, given.value))

        return tuple(c for c in self._origins.index.calls if makes(c))

    @cached_property
    def of_a_model(self) -> Value:
        """What each of `model.losses` is: a mean over the batch, or a term of the weights."""
        return self._of_added()

    @within_itself(batch.UNKNOWN)
    def _of_added(self) -> Value:
        calls = [self._origins.index.parents[a] for a in self._origins.index.attributes["add_loss"]]
        if not calls and not self.regularized:
            return batch.CONSTANT
        given = [c.args[0].value if isinstance(c, cst.Call) and c.args else None for c in calls]
        if any(node is None or self._origins.names.api(node) is not None for node in given):
            return batch.UNKNOWN  # a term of another file
        found = [v for node in given if node is not None for v in self.added(node)]
        fits = all(v.reduction in {Reduction.MEAN, Reduction.CONSTANT} for v in found)
        return batch.MEAN if fits and not self.regularized else batch.UNKNOWN

    @within_itself([batch.UNKNOWN])
    def added(self, node: cst.BaseExpression) -> list[Value]:
        """What `add_loss` is given: one value or several; Keras adds the elements of a value up."""
        found: list[Value] = []
        for origin in self._origins.of(node):
            if isinstance(origin.node, cst.List | cst.Tuple) and not origin.path:
                found += [v for e in origin.node.elements for v in self.added(e.value)]
                continue
            made = origin.node.body if isinstance(origin.node, cst.Lambda) else node
            value = self._value(made)
            unknown = value.guessed or value.power or value.opaque or value.averaged
            summed = value.reduction is Reduction.PER_EXAMPLE
            found.append(batch.UNKNOWN if unknown else batch.SUM if summed else value)
        return found
