"""Methods and functions that Keras calls while it trains: what it passes them, and how often."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import libcst as cst

from ..apis import (
    CALLBACKS,
    EACH_STEP,
    OF_FUNCTIONS,
    SCHEDULER,
)
from ..program import Origins, argument, params_of


class Hooks:
    """Answers for the callbacks of a file."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    def at_each_step(self) -> list[cst.FunctionDef | cst.Lambda]:
        """Methods and functions that Keras calls before or after each step, with the number of its batch."""
        args = [a for c in self._origins.calls_to(OF_FUNCTIONS) for a in c.args if a.keyword is not None]
        given = [a.value for a in args if a.keyword is not None and EACH_STEP.match(a.keyword.value)]
        made = [o.node for value in given for o in self._origins.of(value)]
        return [*self._methods(EACH_STEP), *(n for n in made if isinstance(n, cst.FunctionDef | cst.Lambda))]

    def _methods(self, named: re.Pattern[str]) -> list[cst.FunctionDef]:
        """The methods of the file's own callbacks with such a name."""
        return [f for f in callback_methods(self._origins) if named.match(f.name.value)]

    # --- schedules by the epoch ---------------------------------------------------------------------------------------

    def schedulers(self) -> list[cst.Call]:
        """Calls that make a callback of a function of the epoch."""
        return self._origins.calls_to(SCHEDULER)

    def schedules(self) -> list[cst.FunctionDef | cst.Lambda]:
        """The functions that these callbacks call."""
        found = [f for c in self.schedulers() for f in self.functions(c) or ()]
        return list(dict.fromkeys(found))

    def functions(self, call: cst.Call) -> list[cst.FunctionDef | cst.Lambda] | None:
        """The functions that one such callback may call; None where that is not certain."""
        given = argument(call, "schedule", 0)
        made = [o.node if not o.path else None for o in self._origins.of(given.value)] if given is not None else []
        owners = [self._origins.constructed(m) if m is not None else None for m in made]
        run = [self._origins.method(c, "__call__") if c is not None else m for c, m in zip(owners, made, strict=True)]
        found = [f for f in run if isinstance(f, cst.FunctionDef | cst.Lambda)]
        return found if found and len(found) == len(run) else None

    def given(self, function: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
        """The first two that Keras gives: the epoch and, where a schedule takes it, the present rate; or the batch."""
        return params_of(function)[self._origins.takes_self(function) :][:2]


def callback_methods(origins: Origins) -> list[cst.FunctionDef]:
    """The methods of the file's own callbacks."""
    index = origins.index
    return [f for f in index.functions if origins.below(index.enclosing_class(f), CALLBACKS)]


def is_fitted_model(origins: Origins, node: cst.BaseExpression) -> bool:
    """Whether the expression is `self.model` in a callback."""
    if not isinstance(node, cst.Attribute) or node.attr.value not in {"model", "_model"}:
        return False
    return origins.below(origins.class_of(node.value), CALLBACKS)


def methods_below(origins: Origins, names: Collection[str], ends: tuple[str, ...]) -> Iterator[cst.FunctionDef]:
    """Methods with one of the names, of the file's classes below a class of Keras whose name ends in one of `ends`."""
    for function in origins.index.functions:
        if function.name.value in names and origins.below(origins.index.enclosing_class(function), "keras.", ends):
            yield function
