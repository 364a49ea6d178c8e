"""Which sums and means over the batch are taken over all ranks, by which function, and where that cannot be."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..apis import EXCHANGES, KEEPS_FUNCTION
from ..program import Origins, Problem, backward, closure, exits_before, leading, method, within
from ..sameness import Sameness
from ..training import Gradient, wrappers
from .batch_values import Reduction
from .keras_losses import KerasLosses
from .loss import Losses

_UNLIKE = "this part of the loss has to be taken over all workers, which must not hang on what differs by worker"
_TRACED = (
    "this part of the loss has to be taken over all workers in training alone, and what is put around its function, as "
    "a tf.function that is traced once for training and evaluation, hides which it is"
)
_OUTSIDE = (
    "this part of the loss has to be taken over all workers in training alone, and is computed where no tape records"
)
_BOTH = "this part of the loss has to be taken over all workers for one loss of the file, and by each alone for another"
_INNER = "this part of the loss has to be taken over all workers, and a gradient that trains nothing is taken of it too"


@dataclass(frozen=True)
class Share:
    """An expression that is summed up or averaged over all ranks.

    `trained`: only training computes it. Elsewhere one rank may come alone, so that it is exchanged only where a tape
    records.
    """

    node: cst.BaseExpression
    adds_up: bool
    trained: bool


class SharedTotals:
    """Answers for the losses of a file, when they are known."""

    def __init__(
        self,
        origins: Origins,
        losses: Losses,
        keras: KerasLosses,
        *,
        trained: Collection[Gradient],
        others: Collection[Gradient],
        sameness: Sameness,
    ) -> None:
        """`others` are gradients that train nothing: they stay those of the rank's own loss."""
        self._origins, self._losses, self._keras, self._sameness = origins, losses, keras, sameness
        self._trained, self._others = tuple(trained), tuple(others)

    @cached_property
    def found(self) -> tuple[Share, ...]:
        """What has to be exchanged and is not yet."""
        tape, keras = self._losses, self._keras.losses
        nodes = {c: r is Reduction.SUM for c, r in {**tape.totals.shared, **keras.totals.shared}.items()}
        nodes |= dict.fromkeys([*tape.shares, *keras.shares], False)
        kept = [n for n in nodes if self._origins.called(n) not in EXCHANGES]
        order = self._origins.index.order
        return tuple(Share(n, nodes[n], self._only_trained(n)) for n in sorted(kept, key=lambda n: order.get(n, 0)))

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """What cannot be exchanged where it stands."""
        found = [p for share in self.found if (p := self._misplaced(share)) is not None]
        tape, keras = self._losses.totals, self._keras.losses.totals
        apart = [c for c in tape.shared if c in keras.seen and c not in keras.shared]
        apart += [c for c in keras.shared if c in tape.seen and c not in tape.shared]
        apart += self._keras.reconsidered
        found += [Problem("TFDP090", c, _BOTH, "write the two losses as functions of their own") for c in apart]
        targets = [g.target for g in self._others if g.target is not None]
        inner = backward(self._origins, targets) if targets and (tape.shared or keras.shared) else frozenset()
        mixed = [c for c in (*tape.shared, *keras.shared) if c in inner]
        found += [Problem("TFDP090", c, _INNER, "use a loss of its own for that gradient") for c in mixed]
        functions = self._origins.index.enclosing_function
        return tuple({(functions(p.node), p.reason): p for p in reversed(found)}.values())[::-1]

    # --- where it stands ----------------------------------------------------------------------------------------------

    def _misplaced(self, share: Share) -> Problem | None:
        """On the way from the node to where gradients are taken: what keeps ranks apart, or training from the rest."""
        for node in closure([share.node], lambda place: filter(self._trains, self._callers(place))):
            function = self._origins.index.enclosing_function(node)
            step = self._is_step(function)
            if step and node is not share.node and not share.trained and not self._in_tape(node, function):
                return Problem("TFDP090", share.node, _OUTSIDE, "call the loss inside `with tf.GradientTape()`")
            tests = [self._sameness.differing(n) for n in (node, *exits_before(node, self._origins))]
            if any(test is not None for test in tests):
                return Problem("TFDP090", share.node, _UNLIKE, "compute it at every step, before what it decides")
            if function is not None and not step and self._is_wrapped(function, share):
                return Problem("TFDP090", share.node, _TRACED, "take @tf.function off the loss; the step may keep it")
        return None

    def _callers(self, place: cst.CSTNode) -> list[cst.Call]:
        """The calls of the function that holds a place, unless that is a training step itself."""
        function = self._origins.index.enclosing_function(place)
        return [] if function is None or self._is_step(function) else self._origins.calls_of(function)

    def _is_step(self, function: cst.FunctionDef | None) -> bool:
        """Whether a function, or what is in none, takes a trained gradient."""
        return function is None or any(within(self._origins.index, g.call, function) for g in self._trained)

    def _trains(self, call: cst.Call) -> bool:
        """Whether a call is part of what a trained gradient is taken of, or in a function that training runs."""
        around = self._origins.index.enclosing_function
        if self._is_step(around(call)):
            return call in self._sliced
        places = leading(self._origins, [call])
        return any(p in self._sliced if (f := around(p)) is None else self._runs(f) for p in places)

    def _runs(self, function: cst.FunctionDef) -> bool:
        return self._is_step(function) or function in self._keras.functions

    def _in_tape(self, call: cst.CSTNode, function: cst.FunctionDef | None) -> bool:
        index = self._origins.index
        mine = [g for g in self._trained if function is None or within(index, g.call, function)]
        if mine and all(g.minimized for g in mine):
            return True
        items = [item.item for above in index.ancestors(call) if isinstance(above, cst.With) for item in above.items]
        stops = any(method(i) == "stop_recording" for i in items)
        return not stops and any(Kind.TAPE in self._origins.kinds(i) for i in items)

    def _is_wrapped(self, function: cst.FunctionDef, share: Share) -> bool:
        """Whether something is put around a function, a tf.function or a decorator, by which it may not see the tape.

        Where it need not see one, only XLA is in the way.
        """
        made = wrappers(self._origins, function)
        if not share.trained:
            apis = [self._origins.names.api(m.func if isinstance(m, cst.Call) else m) or "" for m in made]
            return any(api.rpartition(".")[2] not in KEEPS_FUNCTION for api in apis)
        given = [a.keyword.value for m in made if isinstance(m, cst.Call) for a in m.args if a.keyword is not None]
        return not {"jit_compile", "experimental_compile"}.isdisjoint(given)

    # --- who computes it ----------------------------------------------------------------------------------------------

    def _only_trained(self, node: cst.BaseExpression) -> bool:
        """Whether every call that leads to the node comes from a training step of the file."""
        around = self._origins.index.enclosing_function
        if isinstance(self._origins.index.scope_of(node), cst.Lambda):
            return False  # whatever calls it
        if self._is_step(around(node)):
            return True
        places = closure([node], self._callers)
        by_keras = any(around(p) in self._keras.functions for p in leading(self._origins, [node]))
        return all(self._only_steps(p) for p in places) and not by_keras

    def _only_steps(self, place: cst.CSTNode) -> bool:
        """Whether a place is part of a training step, or the function around it is called, and handed to nothing else
        that may call it."""
        function = self._origins.index.enclosing_function(place)
        if function is None or self._is_step(function):
            return place in self._sliced
        return bool(self._origins.calls_of(function)) and not self._is_handed_on(function)

    def _is_handed_on(self, function: cst.FunctionDef) -> bool:
        index, name = self._origins.index, function.name.value
        uses = [u for u in (*index.names[name], *index.attributes[name]) if self._origins.function(u) is function]
        above = [(u, index.parents[u]) for u in uses]
        values = [(u, a) for u, a in above if not (isinstance(a, cst.Call) and a.func is u)]
        makers = [index.parents[a] for _, a in values if isinstance(a, cst.Arg)]
        compiled = [m for m in makers if isinstance(m, cst.Call) and self._origins.kind(m.func) is Kind.COMPILER]
        return len(compiled) < len(values)

    @cached_property
    def _sliced(self) -> frozenset[cst.CSTNode]:
        return backward(self._origins, [value for g in self._trained for value in g.made_of])
