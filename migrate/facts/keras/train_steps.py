"""Gradients that are taken in a model's own `train_step`, which Keras' `fit` runs, and how they reach the optimizer."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import libcst as cst

from ..program import Origins, Problem, leading, method, receiver, within_itself
from ..training import Gradient
from .fits import Fit

_NEXT = "train in one way: by fit, or by a loop that calls the step"


class KerasSteps:
    """Answers for the gradients of a file."""

    def __init__(self, origins: Origins, fits: Iterable[Fit], gradients: Iterable[Gradient]) -> None:
        self._origins = origins
        self.functions = frozenset(f.step for f in fits if f.step is not None)
        self._roots = {g: self._runners(g.call) for g in gradients if g.updates} if self.functions else {}

    @cached_property
    def gradients(self) -> tuple[Gradient, ...]:
        """Gradients that reach an update, taken in a step of Keras' and nowhere else."""
        return tuple(g for g, roots in self._roots.items() if roots and roots <= self.functions)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Gradients that both Keras' `fit` and loops of the file take, and steps of which none is found."""
        both = [g for g, roots in self._roots.items() if roots & self.functions and roots - self.functions]
        reason = "this step is run by fit and by a loop of this file, and can be averaged for one of them only"
        found = [Problem("TFDP031", g.call, reason, _NEXT) for g in both]
        for step in sorted(self.functions, key=self._origins.index.functions.index):
            if not any(step in roots for roots in self._roots.values()) and not self.ends_with_keras(step):
                reason = "how this train_step updates the model's variables is not followed"
                next_step = "take gradients and apply them in this file, or leave train_step to Keras"
                found.append(Problem("TFDP031", step.name, reason, next_step))
        return tuple(found)

    def ends_with_keras(self, step: cst.FunctionDef) -> bool:
        """Whether a step ends with Keras' own: `return super().train_step(data)`."""
        index = self._origins.index
        above = (c for c in index.methods("train_step") if self._origins.is_super(receiver(c)))
        return any(index.enclosing_function(c) is step for c in above)

    def of(self, step: cst.FunctionDef) -> list[Gradient]:
        """The gradients of one step."""
        return [g for g in self.gradients if step in self._roots[g]]

    def unchanged(self, gradient: Gradient) -> bool:
        """Whether every update is given the gradients as the tape gives them: nothing clips or changes them before."""
        return all(u.call is gradient.call or self._applies(u.call, gradient) for u in gradient.updates)

    def _runners(self, node: cst.CSTNode) -> set[cst.CSTNode]:
        """The outermost places that run a node: steps of Keras', and functions and modules that are no such step."""
        index = self._origins.index
        places = [(place, index.enclosing_function(place)) for place in leading(self._origins, [node])]
        modules = {index.root(place) for place, function in places if function is None}
        functions = {f for _, f in places if f is not None}
        return modules | {f for f in functions if f in self.functions or not self._origins.calls_of(f)}

    def _applies(self, call: cst.Call, gradient: Gradient) -> bool:
        given = call.args[0].value if call.args and not call.args[0].star else None
        return given is not None and self._is_gradient(given, gradient)

    @within_itself(False)
    def _is_gradient(self, node: cst.BaseExpression, gradient: Gradient) -> bool:
        found = self._origins.of(node)
        return bool(found) and all(not o.path and self._same(o.node, gradient) for o in found)

    def _same(self, node: cst.CSTNode, gradient: Gradient) -> bool:
        if node is gradient.call:
            return True
        if isinstance(node, cst.ListComp | cst.GeneratorExp):
            return self._pairs(node, gradient)
        if not isinstance(node, cst.Call) or not node.args:
            return False
        pairs = self._origins.called(node) in {"builtins.zip", "builtins.list", "builtins.tuple"}
        same = pairs or method(node) == "get_unscaled_gradients"
        return same and self._is_gradient(node.args[0].value, gradient)

    def _pairs(self, node: cst.ListComp | cst.GeneratorExp, gradient: Gradient) -> bool:
        """`[(g, v) for g, v in zip(gradients, variables) if g is not None]`."""
        loop, made = node.for_in, node.elt
        if loop.inner_for_in is not None or not isinstance(made, cst.Tuple) or not isinstance(loop.target, cst.Tuple):
            return False
        alike = [m.value.deep_equals(t.value) for m, t in zip(made.elements, loop.target.elements, strict=False)]
        return all(alike) and self._is_gradient(loop.iter, gradient)
