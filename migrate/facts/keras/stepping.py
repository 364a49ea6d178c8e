"""What of the file Keras runs at each step: models' own steps, layers, losses and the batch hooks of callbacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import libcst as cst

from ..apis import CALLED, KERAS_COMPUTES
from ..program import Origins, argument, backward
from .fits import Fit
from .hooks import Hooks, methods_below


class KerasStepping:
    """Answers for the fits of a file."""

    def __init__(self, origins: Origins, fits: Iterable[Fit]) -> None:
        self._origins, self._fits, self._hooks = origins, tuple(fits), Hooks(origins)

    @cached_property
    def functions(self) -> frozenset[cst.CSTNode]:
        """What Keras calls at each step."""
        steps = [f.step for f in self._fits if f.step is not None]
        return frozenset([*steps, *self._computing(), *self.hooks, *self._of_losses()])

    @cached_property
    def hooks(self) -> list[cst.FunctionDef | cst.Lambda]:
        """What the file's own callbacks do before or after each step."""
        return self._hooks.at_each_step()

    @cached_property
    def numbers(self) -> frozenset[cst.Param]:
        """Parameters that number the batches of a pass."""
        return frozenset(p for f in self.hooks for p in self._hooks.given(f)[:1])

    @cached_property
    def computed(self) -> frozenset[cst.CSTNode]:
        """All nodes from which layers, and the losses of fitted models, are computed."""
        index = self._origins.index
        added = [a.value for c in index.methods("add_loss") for a in c.args]
        results = [value for f in (*self._computing(), *self._of_losses()) for value in index.returned(f)]
        return backward(self._origins, [*self._given(), *added, *(f.model for f in self._fits), *results])

    def _computing(self) -> Iterator[cst.FunctionDef]:
        """Methods that compute, of the file's own layers, models and losses."""
        return methods_below(self._origins, (*CALLED, "compute_loss"), KERAS_COMPUTES)

    def _of_losses(self) -> Iterator[cst.FunctionDef | cst.Lambda]:
        """Functions that compile is given as losses."""
        parents = self._origins.index.parents
        for node in backward(self._origins, self._given()):
            called = isinstance(call := parents.get(node), cst.Call) and call.func is node
            function = self._origins.function(node) if not called else None
            if isinstance(node, cst.Lambda):
                yield node
            elif function is not None:
                yield function

    def _given(self) -> list[cst.BaseExpression]:
        found: list[cst.BaseExpression] = []
        for each in dict.fromkeys(c for f in self._fits for c in f.compiles):
            if each.own is not None:
                bound = self._origins.bind(each.call, each.own)
                found += [value for name, value in bound.items() if "loss" in name]
            else:
                named = (argument(each.call, "loss", 1), argument(each.call, "loss_weights"))
                found += [a.value for a in named if a is not None]
        return found
