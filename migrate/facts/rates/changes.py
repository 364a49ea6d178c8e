"""Learning rates that a script assigns while it trains: each is scaled once, and the same on all workers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..keras import Hooks
from ..program import Later, Origins, Problem, StepNumbers, argument, controls, nodes, number
from ..sameness import Sameness
from .objects import RATES, plain_object, reads_a_rate, sets_by_name
from .values import Made, RateValue, RateValues

_ASSIGNS = frozenset({"assign", "assign_add", "assign_sub"})
_SETS = re.compile(r"(keras\.backend\.(batch_set_value|set_value|update\w*)|tensorflow\.(compat\.v1\.)?assign\w*)$")
_CONTAINS = (cst.BaseElement, cst.BaseDictElement, cst.Tuple, cst.List, cst.Dict)
_FLOOR = 7  # ReduceLROnPlateau(monitor, factor, patience, verbose, mode, min_delta, cooldown, min_lr)
_NEXT = "give the optimizer a tf.keras.optimizers.schedules schedule"


@dataclass(frozen=True)
class Change:
    """A place that assigns a rate, from what it `reads`; `value` is None where what it does is not understood."""

    place: cst.CSTNode
    value: cst.BaseExpression | None
    reads: tuple[cst.CSTNode, ...]


@dataclass(frozen=True)
class Changes:
    """What has to be scaled of the values that rates are assigned, and what is refused."""

    scale: tuple[cst.BaseExpression, ...]
    differing: tuple[Problem, ...]  # by worker
    places: tuple[cst.CSTNode, ...]
    unscaled: tuple[Problem, ...]  # not understood, or by the step: where rates are scaled and steps are fewer


class RateChanges:
    """Answers for the places that assign the learning rate of what may be a Keras optimizer."""

    def __init__(self, origins: Origins, loops: Iterable[cst.For | cst.While], sameness: Sameness) -> None:
        self._origins, self._sameness = origins, sameness
        self._hooks = Hooks(origins)
        self._values = RateValues(origins, self._hooks.present())
        self._steps = StepNumbers(origins, loops)

    def found(self) -> Changes:
        """Everything about all of them."""
        scale: list[cst.BaseExpression] = []
        differing: list[Problem] = []
        unscaled: list[Problem] = []
        scale += [floor for call in self._plateaus() if (floor := self._floor(call)) is not None]
        unscaled += self._unfollowed()
        changes = [*self._changes(), *self._scheduled()]
        for change in changes:
            value = self._values.of(change.value) if change.value is not None else RateValue(Made.UNKNOWN)
            thresholds = [self._threshold(c) for c in self._comparisons(change)]
            scale += [*value.scale, *(node for t in thresholds if t is not None for node in t.scale)]
            differing += self._differing(change)
            unscaled += self._unscaled(change, Made.UNKNOWN if None in thresholds else value.made)
        places = (*(c.place for c in changes), *self._plateaus())
        return Changes(tuple(dict.fromkeys(scale)), tuple(differing), places, tuple(unscaled))

    def _comparisons(self, change: Change) -> list[cst.Comparison]:
        """Comparisons of the rate itself, on which the change depends: `if rate > 1e-5:`."""
        tests = [n for test in controls(change.place, self._origins) for n in nodes(test)]
        return [n for n in tests if isinstance(n, cst.Comparison) and self._values.mentions_rate(n)]

    def _threshold(self, comparison: cst.Comparison) -> RateValue | None:
        """The sides that are not made of the rate are scaled; None where that is not certain."""
        sides = [comparison.left, *(c.comparator for c in comparison.comparisons)]
        made = [self._values.of(side) for side in sides]
        if any(m.made is Made.UNKNOWN for m in made):
            return None
        return RateValue(Made.RELATIVE, tuple(node for m in made for node in m.scale))

    def _differing(self, change: Change) -> Iterator[Problem]:
        if any(self._sameness.of(node) for node in (*change.reads, *controls(change.place, self._origins))):
            reason = "the learning rate is assigned here by something that may differ by worker"
            next_step = "decide by the number of the epoch, or by a value that all workers share"
            yield Problem("TFDP020", change.place, reason, next_step)

    def _unscaled(self, change: Change, made: Made) -> Iterator[Problem]:
        if made is Made.UNKNOWN:
            reason = "the learning rate is assigned here, where it would replace the scaled one"
            yield Problem("TFDP020", change.place, reason, _NEXT)
            return
        repeats = self._hooks.each_step(change.place) or (made is Made.RELATIVE and self._steps.in_step(change.place))
        values = [*change.reads, *controls(change.place, self._origins)]
        if repeats or not self._steps.all(values).isdisjoint({Later.COUNT, Later.SUM}):
            reason = "the learning rate that is assigned here depends on the step, and steps are fewer here"
            yield Problem("TFDP020", change.place, reason, _NEXT)

    # --- Keras' callbacks ---------------------------------------------------------------------------------------------

    def _scheduled(self) -> list[Change]:
        """What functions of the epoch return to `LearningRateScheduler`."""
        found = []
        for function in self._hooks.schedules():
            if isinstance(function, cst.Lambda):
                found.append(Change(function.body, function.body, (function.body,)))
                continue
            returned = [r.value for r in self._origins.index.returns[function] if r.value is not None]
            found += [Change(value, value, (value,)) for value in returned]
        return found

    def _plateaus(self) -> list[cst.Call]:
        calls = self._origins.index.calls
        return [c for c in calls if self._origins.names.api(c.func) == "keras.callbacks.ReduceLROnPlateau"]

    def _floor(self, call: cst.Call) -> cst.BaseExpression | None:
        """The lowest rate that `ReduceLROnPlateau` sets, where it is not 0."""
        given = argument(call, "min_lr", _FLOOR)
        return None if given is None or number(given.value) == 0 else given.value

    def _unfollowed(self) -> Iterator[Problem]:
        reason = "what this callback sets the learning rate to is not followed"
        for call in self._hooks.schedulers():
            if self._hooks.functions(call) is None:
                yield Problem("TFDP020", call, reason, "give it a function of this file")

    # --- the places ---------------------------------------------------------------------------------------------------

    def _changes(self) -> list[Change]:
        origins = self._origins
        stores = [s for name in sorted(RATES) for s in origins.index.attribute_stores.get(name, ())]
        found = [self._store(*s) for s in stores if not plain_object(s[0].value, origins)]
        named = [c for c in sets_by_name(origins, RATES) if not plain_object(c.args[0].value, origins)]
        found += [Change(c, None, (c.args[-1].value,)) for c in named]
        found += [self._call(c) for c in origins.index.calls if self._assigns(c)]
        kept = [a for name in sorted(RATES) for a in origins.index.attributes.get(name, ()) if self._kept(a)]
        return list(dict.fromkeys([*found, *(Change(a, None, ()) for a in kept)]))

    def _store(self, target: cst.Attribute, value: cst.CSTNode, path: tuple[int, ...]) -> Change:
        """`optimizer.learning_rate = value`, also with an operator that keeps it in proportion."""
        rate = self._values.is_rate(target) and target.attr.value in {"learning_rate", "lr"}
        if isinstance(value, cst.AugAssign):
            falls = isinstance(value.operator, cst.MultiplyAssign | cst.DivideAssign)
            falls = falls and self._values.of(value.value).made is Made.ABSOLUTE
            return Change(target, target if rate and falls else None, (value.value,))
        understood = rate and not path and isinstance(value, cst.BaseExpression)
        return Change(target, value if understood and isinstance(value, cst.BaseExpression) else None, (value,))

    def _call(self, call: cst.Call) -> Change:
        """`rate.assign(value)` and `set_value(rate, value)`."""
        args = [a.value for a in call.args]
        plain = not any(a.star or a.keyword for a in call.args)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "assign" and plain and len(args) == 1:
            return Change(call, args[0] if self._is_rate(call.func.value) else None, tuple(args))
        if self._origins.names.api(call.func) == "keras.backend.set_value" and plain and len(args) == 2:
            return Change(call, args[1] if self._is_rate(args[0]) else None, tuple(args[1:]))
        return Change(call, None, tuple(args))

    def _is_rate(self, node: cst.BaseExpression) -> bool:
        found = self._origins.of(node)
        return bool(found) and all(self._values.is_rate(o.node) and not o.path for o in found)

    def _assigns(self, call: cst.Call) -> bool:
        origins = self._origins
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _ASSIGNS:
            return self._may_be_a_rate(call.func.value)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "_set_hyper":
            return Kind.OPTIMIZER in origins.kinds(call.func.value) or origins.class_of(call.func.value) is None
        if _SETS.match(origins.names.api(call.func) or ""):
            return not call.args or self._may_be_a_rate(call.args[0].value, unknown=True)
        return False

    def _kept(self, rate: cst.Attribute) -> bool:
        """Whether an optimizer's rate is put into a container, out of which it may be assigned unseen."""
        if Kind.OPTIMIZER not in self._origins.kinds(rate.value):
            return False
        parents = self._origins.index.parents
        node: cst.CSTNode = rate
        while isinstance(parents[node], _CONTAINS):
            node = parents[node]
        return node is not rate and isinstance(parents[node], cst.Assign | cst.AnnAssign | cst.Return)

    def _may_be_a_rate(self, node: cst.BaseExpression, unknown: bool = False) -> bool:
        """Whether a variable may be a rate.

        With `unknown`, one that comes from anywhere but this file's expressions is taken for it.
        """
        if reads_a_rate(node, self._origins):
            return True
        for origin in self._origins.of(node):
            if isinstance(origin.node, cst.FunctionDef | cst.ClassDef):
                continue
            if reads_a_rate(origin.node, self._origins) or (unknown and isinstance(origin.node, cst.Param)):
                return True
        return False
