"""Learning rates that a script assigns while it trains: each is scaled once, and the same on all workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..apis import ASSIGNS, RATES, SETS
from ..keras import Hooks
from ..program import Later, Origins, Problem, StepNumbers, argument, controls, method, nodes, number, receiver
from ..sameness import Sameness
from .objects import plain_object, reads_a_rate, sets_by_name
from .values import Made, RateValues

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
    read: tuple[tuple[cst.CSTNode, tuple[cst.CSTNode, ...]], ...] = ()  # by each place, with what decides about it


class RateChanges:
    """Answers for the places that assign the learning rate of what may be a Keras optimizer."""

    def __init__(self, origins: Origins, loops: Iterable[cst.For | cst.While], sameness: Sameness) -> None:
        self._origins, self._sameness = origins, sameness
        self._hooks = Hooks(origins)
        self._values = RateValues(origins, self._hooks.present())
        self._steps = StepNumbers(origins, loops)

    def found(self) -> Changes:
        """Everything about all of them."""
        plateaus = self._origins.calls_to("keras.callbacks.ReduceLROnPlateau")
        floors = (argument(call, "min_lr", _FLOOR) for call in plateaus)
        scale = [floor.value for floor in floors if floor is not None and number(floor.value) != 0]
        differing: list[Problem] = []
        unscaled = list(self._unfollowed())
        read: list[tuple[cst.CSTNode, tuple[cst.CSTNode, ...]]] = []
        changes = [*self._changes(), *self._scheduled()]
        for change in changes:
            tests = controls(change.place, self._origins)
            read.append((change.place, (*change.reads, *tests)))
            value = self._values.of(change.value) if change.value is not None else self._values.unknown
            compared = self._values.together(self._compared(tests))
            scale += [*value.scale, *compared.scale]
            differing += self._differing(change, [*change.reads, *tests])
            made = compared.made if compared.made is Made.UNKNOWN else value.made
            unscaled += self._unscaled(change, made, [*change.reads, *tests])
        places = (*(c.place for c in changes), *plateaus)
        return Changes(tuple(dict.fromkeys(scale)), tuple(differing), places, tuple(unscaled), tuple(read))

    def _compared(self, tests: list[cst.CSTNode]) -> list[cst.BaseExpression]:
        """What is compared with the rate itself to decide on a change: `if rate > 1e-5:`."""
        found = (n for test in tests for n in nodes(test) if isinstance(n, cst.Comparison))
        mentioned = [c for c in found if self._values.mentions_rate(c)]
        return [side for c in mentioned for side in (c.left, *(target.comparator for target in c.comparisons))]

    def _differing(self, change: Change, reasons: list[cst.CSTNode]) -> Iterator[Problem]:
        if any(self._sameness.of(node) for node in reasons) or any(self._sameness.raising(change.place)):
            reason = "the learning rate is assigned here by something that may differ by worker"
            next_step = "decide by the number of the epoch, or by a value that all workers share"
            yield Problem("TFDP020", change.place, reason, next_step)

    def _unscaled(self, change: Change, made: Made, reasons: list[cst.CSTNode]) -> Iterator[Problem]:
        repeats = self._hooks.each_step(change.place) or (made is Made.RELATIVE and self._steps.in_step(change.place))
        if made is Made.UNKNOWN:
            reason = "the learning rate is assigned here, where it would replace the scaled one"
            yield Problem("TFDP020", change.place, reason, _NEXT)
        elif repeats or not self._steps.all(reasons).isdisjoint({Later.COUNT, Later.SUM}):
            reason = "the learning rate that is assigned here depends on the step, and steps are fewer here"
            yield Problem("TFDP020", change.place, reason, _NEXT)

    # --- Keras' callbacks ---------------------------------------------------------------------------------------------

    def _scheduled(self) -> list[Change]:
        """What functions of the epoch return to `LearningRateScheduler`."""
        given = [value for f in self._hooks.schedules() for value in self._origins.index.returned(f)]
        return [Change(value, value, (value,)) for value in given]

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
        return Change(target, value if rate and not path and isinstance(value, cst.BaseExpression) else None, (value,))

    def _call(self, call: cst.Call) -> Change:
        """`rate.assign(value)` and `set_value(rate, value)`."""
        args = [a.value for a in call.args]
        plain = not any(a.star or a.keyword for a in call.args)
        if method(call) == "assign" and plain and len(args) == 1:
            return Change(call, args[0] if self._is_rate(receiver(call)) else None, tuple(args))
        if self._origins.called(call) == "keras.backend.set_value" and plain and len(args) == 2:
            return Change(call, args[1] if self._is_rate(args[0]) else None, tuple(args[1:]))
        return Change(call, None, tuple(args))

    def _is_rate(self, node: cst.BaseExpression) -> bool:
        found = self._origins.of(node)
        return bool(found) and all(self._values.is_rate(o.node) and not o.path for o in found)

    def _assigns(self, call: cst.Call) -> bool:
        if method(call) in ASSIGNS:
            return self._may_be_a_rate(receiver(call))
        if method(call) == "_set_hyper":
            held = receiver(call)
            return Kind.OPTIMIZER in self._origins.kinds(held) or self._origins.class_of(held) is None
        sets = SETS.match(self._origins.called(call)) is not None
        return sets and (not call.args or self._may_be_a_rate(call.args[0].value, unknown=True))

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
        made = [o.node for o in self._origins.of(node) if not isinstance(o.node, cst.FunctionDef | cst.ClassDef)]
        given = unknown and any(isinstance(m, cst.Param) for m in made)
        return given or any(reads_a_rate(m, self._origins) for m in (node, *made))
