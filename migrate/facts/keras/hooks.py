"""Methods and functions that Keras calls while it trains: what it passes them, and how often."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import libcst as cst

from ..program import Origins

_EACH_STEP = re.compile(r"on_(train_)?batch_(begin|end)$")
_EACH_EPOCH = re.compile(r"on_(epoch|train)_(begin|end)$")
SCHEDULER = "keras.callbacks.LearningRateScheduler"
_OF_FUNCTIONS = "keras.callbacks.LambdaCallback"


def params_of(function: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
    """The parameters that can be given by position."""
    return [*function.params.posonly_params, *function.params.params]


class Hooks:
    """Answers for the callbacks of a file."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    def shared(self) -> frozenset[cst.Param]:
        """Parameters that are the same on all ranks: the epoch, its averaged logs, the rate."""
        found: list[cst.Param] = []
        for function in self._origins.index.functions:
            if _EACH_EPOCH.match(function.name.value) and self._is_callback(function):
                found += params_of(function)[1:]
        for schedule in self.schedules():
            found += self.given(schedule)
        return frozenset(found)

    def each_step(self, node: cst.CSTNode) -> bool:
        """Whether a place is in a method that Keras calls at each step."""
        function = self._origins.index.enclosing_function(node)
        named = function is not None and _EACH_STEP.match(function.name.value) is not None
        return named and function is not None and self._is_callback(function)

    def at_each_step(self) -> list[cst.FunctionDef | cst.Lambda]:
        """Methods and functions that Keras calls before or after each step, with the number of its batch."""
        index, names = self._origins.index, self._origins.names
        found: list[cst.FunctionDef | cst.Lambda] = []
        found += [f for f in index.functions if _EACH_STEP.match(f.name.value) and self._is_callback(f)]
        for given in (a for c in index.calls if names.api(c.func) == _OF_FUNCTIONS for a in c.args):
            if given.keyword is not None and _EACH_STEP.match(given.keyword.value):
                made = [o.node for o in self._origins.of(given.value)]
                found += [n for n in made if isinstance(n, cst.FunctionDef | cst.Lambda)]
        return found

    def _is_callback(self, function: cst.FunctionDef) -> bool:
        owner = self._origins.index.enclosing_class(function)
        return owner is not None and any((b or "").startswith("keras.callbacks.") for b in self._origins.bases(owner))

    # --- schedules by the epoch ---------------------------------------------------------------------------------------

    def schedulers(self) -> list[cst.Call]:
        """Calls that make a callback of a function of the epoch."""
        return [c for c in self._origins.index.calls if self._origins.names.api(c.func) == SCHEDULER]

    def schedules(self) -> list[cst.FunctionDef | cst.Lambda]:
        """The functions that these callbacks call."""
        found = [f for c in self.schedulers() for f in self.functions(c) or ()]
        return list(dict.fromkeys(found))

    def functions(self, call: cst.Call) -> list[cst.FunctionDef | cst.Lambda] | None:
        """The functions that one such callback may call; None where that is not certain."""
        given = next((a.value for a in call.args if a.keyword is None or a.keyword.value == "schedule"), None)
        origins = self._origins.of(given) if given is not None else ()
        found: list[cst.FunctionDef | cst.Lambda] = []
        for origin in origins:
            node: cst.CSTNode | None = origin.node if not origin.path else None
            owner = self._origins.constructed(node) if node is not None else None
            node = self._origins.method(owner, "__call__") if owner is not None else node
            if not isinstance(node, cst.FunctionDef | cst.Lambda):
                return None
            found.append(node)
        return found or None

    def given(self, function: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
        """The first two that Keras gives: the epoch and, where a schedule takes it, the present rate; or the batch."""
        method = isinstance(function, cst.FunctionDef) and self._origins.index.enclosing_class(function) is not None
        return params_of(function)[1 if method else 0 :][:2]

    def present(self) -> frozenset[cst.Param]:
        """The parameters that are the present rate."""
        return frozenset(p for f in self.schedules() for p in self.given(f)[1:])


def methods_below(origins: Origins, names: Collection[str], ends: tuple[str, ...]) -> Iterator[cst.FunctionDef]:
    """Methods with one of the names, of the file's classes below a class of Keras whose name ends in one of `ends`."""
    for function in origins.index.functions:
        owner = origins.index.enclosing_class(function)
        if owner is not None and function.name.value in names:
            above = [b or "" for b in origins.bases(owner)]
            if any(b.startswith("keras.") and b.endswith(ends) for b in above):
                yield function
