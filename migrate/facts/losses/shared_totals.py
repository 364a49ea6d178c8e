"""Which sums and means over the batch are taken over all ranks, by which function, and where that cannot be."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, Problem, backward, exits_before, last_name, within
from ..sameness import Sameness
from ..training import Gradient, wrappers
from .batch_values import Reduction
from .keras_losses import KerasLosses
from .loss import Losses

_EXCHANGES = frozenset(f"tfdp.runtime.{name}" for name in ("allreduce", "global_mean", "global_sum"))
_COMPILES = frozenset({"jit_compile", "experimental_compile"})
_UNLIKE = "this part of the loss has to be taken over all workers, which must not hang on what differs by worker"
_TRANSPARENT = frozenset({"register_keras_serializable", "staticmethod", "classmethod", "do_not_convert"})
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
        of_keras = self._keras.totals
        totals = {**self._losses.totals.shared, **of_keras.shared}
        nodes: dict[cst.BaseExpression, bool] = {c: r is Reduction.SUM for c, r in totals.items()}
        nodes |= dict.fromkeys([*self._losses.shares, *self._keras.shares], False)
        kept = [n for n in nodes if not self._is_exchanged(n)]
        order = self._origins.index.order
        return tuple(Share(n, nodes[n], self._only_trained(n)) for n in sorted(kept, key=lambda n: order.get(n, 0)))

    def _is_exchanged(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and self._origins.names.api(node.func) in _EXCHANGES

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """What cannot be exchanged where it stands."""
        found = [p for share in self.found if (p := next(self._misplaced(share, share.node, []), None)) is not None]
        tape, keras = self._losses.totals, self._keras.totals
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

    def _misplaced(self, share: Share, node: cst.CSTNode, seen: list[cst.CSTNode]) -> Iterator[Problem]:
        """On the way from the node to where gradients are taken: what keeps ranks apart, or training from the rest."""
        function = self._origins.index.enclosing_function(node)
        tests = [self._sameness.differing(n) for n in (node, *exits_before(node, self._origins))]
        if any(test is not None for test in tests):
            yield Problem("TFDP090", share.node, _UNLIKE, "compute it at every step, before what it decides")
        if function is None or function in seen or self._takes_gradient(function):
            return
        if self._is_wrapped(function, share):
            yield Problem("TFDP090", share.node, _TRACED, "take @tf.function off the loss; the step may keep it")
        for call in self._origins.calls_of(function):
            around = self._origins.index.enclosing_function(call)
            step = around is None or self._takes_gradient(around)
            if not (call in self._sliced if step else around is not None and self._trains(around, ())):
                continue
            if step and not share.trained and not self._in_tape(call, around):
                yield Problem("TFDP090", share.node, _OUTSIDE, "call the loss inside `with tf.GradientTape()`")
            yield from self._misplaced(share, call, [*seen, function])

    def _takes_gradient(self, function: cst.FunctionDef) -> bool:
        return any(within(self._origins.index, g.call, function) for g in self._trained)

    def _in_tape(self, call: cst.Call, function: cst.FunctionDef | None) -> bool:
        index = self._origins.index
        mine = [g for g in self._trained if function is None or within(index, g.call, function)]
        if mine and all(g.minimized for g in mine):
            return True
        items = [item.item for above in index.ancestors(call) if isinstance(above, cst.With) for item in above.items]
        stops = any(isinstance(i, cst.Call) and last_name(i.func) == "stop_recording" for i in items)
        return not stops and any(Kind.TAPE in self._origins.kinds(i) for i in items)

    def _is_wrapped(self, function: cst.FunctionDef, share: Share) -> bool:
        """Whether something is put around a function, a tf.function or a decorator, by which it may not see the tape.

        Where it need not see one, only XLA is in the way.
        """
        made = wrappers(self._origins, function)
        if not share.trained:
            apis = [self._origins.names.api(m.func if isinstance(m, cst.Call) else m) or "" for m in made]
            return any(api.rpartition(".")[2] not in _TRANSPARENT for api in apis)
        given = [a.keyword.value for m in made if isinstance(m, cst.Call) for a in m.args if a.keyword is not None]
        return not _COMPILES.isdisjoint(given)

    # --- who computes it ----------------------------------------------------------------------------------------------

    def _only_trained(self, node: cst.BaseExpression) -> bool:
        """Whether every call that leads to the node comes from a training step of the file."""
        function = self._origins.index.enclosing_function(node)
        if isinstance(self._origins.index.scope_of(node), cst.Lambda):
            return False  # whatever calls it
        if function is None or self._takes_gradient(function):
            return True  # in the step itself
        return self._called_in_steps(function, ()) and not self._of_keras(function, ())

    def _called_in_steps(self, function: cst.FunctionDef, seen: tuple[cst.CSTNode, ...]) -> bool:
        """Whether the function is called, only by training steps, and handed to nothing that may call it elsewhere."""
        calls = self._origins.calls_of(function)
        inside = bool(calls) and all(self._leads_to_gradient(c, (*seen, function)) for c in calls)
        return inside and not self._is_handed_on(function)

    def _is_handed_on(self, function: cst.FunctionDef) -> bool:
        index, name = self._origins.index, function.name.value
        uses = [u for u in (*index.names[name], *index.attributes[name]) if self._origins.function(u) is function]
        above = [(u, index.parents[u]) for u in uses]
        values = [(u, a) for u, a in above if not (isinstance(a, cst.Call) and a.func is u)]
        makers = [index.parents[a] for _, a in values if isinstance(a, cst.Arg)]
        compiled = [m for m in makers if isinstance(m, cst.Call) and self._origins.kind(m.func) is Kind.COMPILER]
        return len(compiled) < len(values)

    def _of_keras(self, function: cst.FunctionDef, seen: tuple[cst.CSTNode, ...]) -> bool:
        """Whether Keras calls the function, or one that calls it, for a compiled loss."""
        if function in seen:
            return False
        callers = [self._origins.index.enclosing_function(c) for c in self._origins.calls_of(function)]
        above = (self._of_keras(c, (*seen, function)) for c in callers if c is not None)
        return function in self._keras.functions or any(above)

    def _trains(self, function: cst.FunctionDef, seen: tuple[cst.CSTNode, ...]) -> bool:
        """Whether a training step runs the function, or is in it."""
        if function in seen:
            return False
        if self._takes_gradient(function) or function in self._keras.functions:
            return True
        calls = self._origins.calls_of(function)
        around = [self._origins.index.enclosing_function(c) for c in calls]
        above = any(self._trains(a, (*seen, function)) for a in around if a is not None)
        return above or any(a is None and c in self._sliced for a, c in zip(around, calls, strict=True))

    def _leads_to_gradient(self, node: cst.CSTNode, seen: tuple[cst.CSTNode, ...]) -> bool:
        """Whether a call is part of what a trained gradient is taken of, or in a function that only such calls call."""
        function = self._origins.index.enclosing_function(node)
        if function is None or self._takes_gradient(function):
            return node in self._sliced
        return function in seen or self._called_in_steps(function, seen)

    @cached_property
    def _sliced(self) -> frozenset[cst.CSTNode]:
        return backward(self._origins, [value for g in self._trained for value in g.made_of])
