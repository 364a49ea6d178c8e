"""Where a script has a training step compiled by XLA."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, argument, is_off, leading, within
from ..training import Gradient
from .fits import Fit


class Xla:
    """Answers for fitted models and for the functions around trained gradients."""

    def __init__(self, origins: Origins, fits: Iterable[Fit], gradients: Iterable[Gradient]) -> None:
        self._origins, self._fits, self._gradients = origins, tuple(fits), tuple(gradients)

    def found(self) -> tuple[tuple[cst.Call, str], ...]:
        """Calls of `compile` and `tf.function` with the keyword that turns XLA on for a training step."""
        compiles = dict.fromkeys(c.call for f in self._fits for c in f.compiles)
        calls = [*compiles, *(c for c in self._origins.index.calls if self._compiles_step(c))]
        return tuple((c, k) for c in calls for k in ("jit_compile", "experimental_compile") if self._on(c, k))

    def _on(self, call: cst.Call, keyword: str) -> bool:
        given = argument(call, keyword)
        if given is None or is_off(self._origins, given.value):
            return False
        return not (isinstance(given.value, cst.SimpleString) and given.value.evaluated_value == "auto")

    def _compiles_step(self, call: cst.Call) -> bool:
        """`@tf.function(…)` above, or `tf.function(f, …)` around, a function that trains."""
        if self._origins.kind(call.func) is not Kind.COMPILER:
            return False
        decorator = self._origins.index.parents[call]
        function = self._origins.index.parents[decorator] if isinstance(decorator, cst.Decorator) else None
        if function is None and call.args:
            function = self._origins.function(call.args[0].value)
        return isinstance(function, cst.FunctionDef) and any(self._runs(function, g) for g in self._gradients)

    def _runs(self, function: cst.FunctionDef, gradient: Gradient) -> bool:
        """Whether a function takes a gradient or updates by it, itself or in what it calls."""
        places = leading(self._origins, [gradient.call, *(u.call for u in gradient.updates)])
        return any(within(self._origins.index, place, function) for place in places)
