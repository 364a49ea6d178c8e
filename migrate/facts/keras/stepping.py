"""What of the file Keras runs at each step: models' own steps, layers, losses and the batch hooks of callbacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import libcst as cst

from ..program import Origins, argument, backward
from .fits import Compile, Fit
from .hooks import Hooks, methods_below, params_of

_COMPUTES = frozenset({"__call__", "call", "compute_loss"})
_COMPUTING = (".Layer", ".Loss", ".Model", ".Regularizer", ".RNN", ".Sequential", "Cell")
_ADDS = frozenset({"add_loss"})


class KerasStepping:
    """Answers for the fits of a file."""

    def __init__(self, origins: Origins, fits: Iterable[Fit]) -> None:
        self._origins, self._fits, self._hooks = origins, tuple(fits), Hooks(origins)

    @cached_property
    def functions(self) -> frozenset[cst.CSTNode]:
        """What Keras calls at each step."""
        steps = [f.step for f in self._fits if f.step is not None]
        return frozenset([*steps, *self._computing(), *self._hooks.at_each_step(), *self._of_losses()])

    @cached_property
    def numbers(self) -> frozenset[cst.Param]:
        """Parameters that number the batches of a pass."""
        given = [(f, params_of(f)) for f in self._hooks.at_each_step()]
        return frozenset(p for f, ps in given for p in ps[1 if self._is_method(f) else 0 :][:1])

    @cached_property
    def computed(self) -> frozenset[cst.CSTNode]:
        """All nodes from which layers, and the losses of fitted models, are computed."""
        functions = [*self._computing(), *self._of_losses()]
        added = [a.value for c in self._origins.index.calls if _adds(c) for a in c.args]
        roots = [*self._given(), *added, *(f.model for f in self._fits), *self._results(functions)]
        return backward(self._origins, roots)

    def _computing(self) -> Iterator[cst.FunctionDef]:
        """Methods that compute, of the file's own layers, models and losses."""
        return methods_below(self._origins, _COMPUTES, _COMPUTING)

    def _of_losses(self) -> Iterator[cst.FunctionDef | cst.Lambda]:
        """Functions that compile is given as losses."""
        for node in backward(self._origins, self._given()):
            if isinstance(node, cst.Lambda):
                yield node
            elif isinstance(node, cst.Name | cst.Attribute) and not self._is_called(node):
                function = self._origins.function(node)
                yield from [function] if function is not None else []

    def _given(self) -> list[cst.BaseExpression]:
        compiles: dict[Compile, None] = dict.fromkeys(c for f in self._fits for c in f.compiles)
        found: list[cst.BaseExpression] = []
        for each in compiles:
            if each.own is not None:
                bound = self._origins.bind(each.call, each.own)
                found += [value for name, value in bound.items() if "loss" in name]
            else:
                named = (argument(each.call, "loss", 1), argument(each.call, "loss_weights"))
                found += [a.value for a in named if a is not None]
        return found

    def _results(self, functions: Iterable[cst.FunctionDef | cst.Lambda]) -> Iterator[cst.BaseExpression]:
        for function in functions:
            if isinstance(function, cst.Lambda):
                yield function.body
            else:
                yield from (r.value for r in self._origins.index.returns[function] if r.value is not None)

    def _is_called(self, node: cst.CSTNode) -> bool:
        return isinstance(call := self._origins.index.parents.get(node), cst.Call) and call.func is node

    def _is_method(self, function: cst.FunctionDef | cst.Lambda) -> bool:
        return isinstance(function, cst.FunctionDef) and self._origins.index.enclosing_class(function) is not None


def _adds(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _ADDS
