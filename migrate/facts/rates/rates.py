"""Optimizers and the expressions that are their learning rates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from ...catalogue import MADE_BY_NAME, OPTIMIZERS, SCALED_OPTIMIZER, Kind
from ..apis import RATES, SAME_NUMBER
from ..keras import Given, is_name, unmade_optimizer
from ..program import Origins, Problem, argument, is_none, nodes, number, parts
from ..training import Gradient, PlainRate, Update
from .objects import makes_schedule
from .own_optimizers import OwnOptimizers, OwnRate

_OF_SCHEDULE = "made of a schedule, and tfdp cannot tell how it depends on the step"
_NEXT = "write the rate as a number, a constant or an argument where the optimizer is made"


@dataclass(frozen=True)
class Rate:
    """The learning rate of one optimizer: the call that makes it, the argument's keyword, and its value or default."""

    call: cst.Call
    keyword: str
    value: cst.BaseExpression | None  # None: omitted
    default: str  # source text of the default, where omitted
    scaled: bool
    schedules: tuple[cst.Call, ...] = ()  # more than one where the script chooses between them
    position: int | None = None
    decay: cst.Arg | None = None  # Keras 2: by which the rate falls at each step
    factor: cst.BaseExpression | None = None  # of an update written out: the expression that is the rate
    hidden: bool = False  # the call does not show it: the optimizer is scaled as it is, or what names it as `factor`

    @property
    def place(self) -> cst.BaseExpression:
        """Where the rate is: by this two rates are told apart."""
        return self.factor or self.call

    @property
    def omitted(self) -> bool:
        """Whether `compile` is given no optimizer at all: the one that is written out is scaled there."""
        return self.hidden and bool(self.keyword) and self.factor is None


class Rates:
    """Answers for the optimizers that the gradients reach."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._own = OwnOptimizers(origins)

    def of(
        self, gradients: tuple[Gradient, ...], given: Iterable[Given] = ()
    ) -> tuple[tuple[Rate, ...], tuple[Problem, ...]]:
        """The rates of all optimizers that get a gradient, or are given to Keras' `fit`, each once, and what could not
        be found."""
        rates: dict[cst.CSTNode, Rate] = {}
        problems: dict[Problem, None] = {}
        found_here = [f for gradient in gradients for f in self._of(gradient)]
        for found in [*found_here, *(f for g in given for f in self.of_given(g))]:
            if isinstance(found, Rate):
                rates[found.place] = found
            else:
                problems[found] = None
        return tuple(rates.values()), tuple(problems)

    def _of(self, gradient: Gradient) -> list[Rate | Problem]:
        found = [f for update in gradient.updates for f in self._of_update(update)]
        by_hand = [u.call for u in gradient.updates if u.kind == "assign"]
        own = self._own.rates(by_hand) if by_hand else []
        return [*found, *(o if isinstance(o, Problem) else self._of_own(o) for o in own)]

    def _of_update(self, update: Update) -> list[Rate | Problem]:
        if update.kind == "unknown":
            return [self._unmade(update.call, update.receiver)]
        made = self._origins.of(update.receiver) if update.kind == "keras" else ()
        return [self._of_keras(o.node) for o in made if isinstance(o.node, cst.Call)]

    def of_given(self, given: Given) -> list[Rate | Problem]:
        """The rates of what a model is compiled with: an optimizer, or its name or configuration."""
        if given.value is None:
            call, keyword = given.call, given.keyword
            if call is None or keyword is None or given.done:
                return []
            return [Rate(call, keyword, None, given.default, False, position=given.position or 0, hidden=True)]
        if is_name(self._origins, given.value):
            call = given.call or cst.Call(cst.Name("compile"))
            return [Rate(call, given.keyword or "", given.value, "", False, factor=given.value, hidden=True)]
        made = [o for o in self._origins.of(given.value) if not is_none(self._origins, o.node)]
        found = [o.node if isinstance(o.node, cst.Call) and not o.path else None for o in made]
        calls = [c if c is not None and self._is_optimizer(c) else None for c in found]
        return [self._unmade(given.value, given.value) if c is None else self._of_keras(c) for c in calls]

    def _unmade(self, place: cst.CSTNode, optimizer: cst.CSTNode) -> Problem:
        """An optimizer that no call in the file is known to make."""
        next_step = "make the optimizer in this file, so that its learning rate can be scaled"
        return unmade_optimizer(self._origins, "TFDP020", place, optimizer, next_step)

    def _is_optimizer(self, call: cst.Call) -> bool:
        owner = self._origins.constructed(call)
        return self._origins.kind(call.func) is Kind.OPTIMIZER or owner is not None

    def _of_keras(self, call: cst.Call) -> Rate | Problem:
        owner = self._origins.constructed(call)
        if owner is not None:
            reason = f"{owner.name.value} is an optimizer of this file; cannot tell where its learning rate is set"
            return Problem("TFDP020", call, reason, _NEXT)
        api = self._origins.called(call)
        if api == SCALED_OPTIMIZER:
            return Rate(call, "", None, "", True, hidden=True)
        if api in MADE_BY_NAME or any(a.star for a in call.args):
            return self._hidden(call)
        given = argument(call, "learning_rate", 0) or argument(call, "lr")
        if given is not None:
            keyword = given.keyword.value if given.keyword is not None else "learning_rate"
            return self._rate(call, keyword, given.value, decay=self._decay(call))
        default = OPTIMIZERS.get(api.rpartition(".")[2])
        if default is None:  # it is not the same in all versions of TensorFlow, or the script chooses the class
            return self._hidden(call)
        return Rate(call, "learning_rate", None, str(default), False, decay=self._decay(call))

    def _hidden(self, call: cst.Call) -> Rate | Problem:
        if self._decay(call) is None:
            return Rate(call, "", None, "", False, hidden=True)
        reason = "decay= lowers the rate by the step, and steps are fewer here"
        return Problem("TFDP020", call, reason, "write learning_rate= out, or use a schedule")

    def _decay(self, call: cst.Call) -> cst.Arg | None:
        given = argument(call, "decay")
        off = given is None or is_none(self._origins, given.value) or number(given.value) == 0
        return None if off else given

    def _of_own(self, own: OwnRate | PlainRate) -> Rate | Problem:
        if isinstance(own, PlainRate):
            return Rate(own.call, "rate", own.factor, "", own.scaled, factor=own.factor)
        given = argument(own.call, own.parameter, own.position)
        if given is not None:
            return self._rate(own.call, own.parameter, given.value, own.position)
        if own.default is None or any(a.star for a in own.call.args):
            return Problem("TFDP020", own.call, f"cannot tell what value {own.parameter} has here", _NEXT)
        return Rate(own.call, own.parameter, None, cst.Module([]).code_for_node(own.default), False)

    # --- the value of a rate ------------------------------------------------------------------------------------------

    def _rate(
        self,
        call: cst.Call,
        keyword: str,
        value: cst.BaseExpression,
        position: int = 0,
        decay: cst.Arg | None = None,
    ) -> Rate | Problem:
        schedules = []
        for origin in self._origins.of(value):
            node, api = origin.node, self._origins.called(origin.node)
            if api == "tfdp.runtime.scale_lr":
                return Rate(call, keyword, value, "", True)
            if api == "tfdp.runtime.local_schedule":
                continue  # the schedule in it sees the one-process script's steps already
            of_a_grid = isinstance(node, cst.Call) and api == "itertools.product"
            reason = self._in_grid(node, origin.path) if of_a_grid else self._not_understood(node)
            if reason is not None:
                return Problem("TFDP020", value, f"the learning rate is {reason}", _NEXT)
            if isinstance(node, cst.Call) and makes_schedule(self._origins, node):
                schedules.append(node)
        return Rate(call, keyword, value, "", False, tuple(schedules), position, decay)

    def _not_understood(self, node: cst.CSTNode) -> str | None:
        """Why a value may be no rate that scaling it once makes right."""
        if isinstance(node, cst.Lambda | cst.FunctionDef):
            return "a function, and tfdp cannot tell how it depends on the step"
        if makes_schedule(self._origins, node):
            return None
        if any(self._is_an_optimizers(n) for n in nodes(node)):
            return "that of another optimizer, which is scaled itself"
        if any(makes_schedule(self._origins, p) for p in self._parts(node)):
            return _OF_SCHEDULE
        api = self._origins.called(node)
        if api == "tensorflow.Variable":
            return "a variable that may be assigned during training"
        if self._origins.constructed(node) is not None:
            return "an object of this file's own class"
        if api and api not in SAME_NUMBER and not api.startswith(("builtins.", "math.", "numpy.", "os.")):
            return f"made by {api}(…), and tfdp cannot tell whether it depends on the step"
        return None

    def _in_grid(self, grid: cst.CSTNode, path: tuple[int, ...]) -> str | None:
        """The same for what `itertools.product` takes out of its lists; of all of them where it is not clear which."""
        args = cst.ensure_type(grid, cst.Call).args
        plain = len(path) > 1 and not any(a.star or a.keyword for a in args) and 0 <= path[1] < len(args)
        lists = args[path[1] : path[1] + 1] if plain else args
        for part in (p for a in lists for p in self._parts(a.value)):
            made = [o.node for o in self._origins.of(part)] if isinstance(part, cst.Name | cst.Attribute) else [part]
            called = (m for m in made if isinstance(m, cst.Call | cst.Lambda | cst.FunctionDef))
            reasons = (self._not_understood(m) for m in called)
            if (reason := next((r for r in reasons if r is not None), None)) is not None:
                return reason
            if any(makes_schedule(self._origins, m) for m in made):
                return _OF_SCHEDULE
        return None

    def _parts(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """What a value is made of, or is looked up in: a table, a class whose body holds it."""
        found = parts(self._origins, node)
        for each in [n for n in found if isinstance(n, cst.Attribute)]:
            held = self._origins.one(each.value)
            owner = self._origins.class_of(each.value) or (held.node if held is not None else None)
            if isinstance(owner, cst.ClassDef):
                definitions = self._origins.index.definitions[owner].get(each.attr.value, ())
                found += [p for d in definitions if d.value is not None for p in parts(self._origins, d.value)]
        return found

    def _is_an_optimizers(self, node: cst.CSTNode) -> bool:
        held = node.value if isinstance(node, cst.Attribute) and node.attr.value in RATES else None
        return held is not None and Kind.OPTIMIZER in self._origins.kinds(held)
