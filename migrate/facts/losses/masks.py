"""Layers that hide elements from the loss, and those behind them that use the mask up before it gets there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..apis import POOLS, RECURRENT
from ..program import Origins, argument, closure, is_off, reaching, receiver, within_itself

_MASK_POSITION = 4  # Embedding(input_dim, output_dim, initializer, regularizer, …): from here on mask_zero may be one


class Masks:
    """Answers for the whole file."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    @cached_property
    def made(self) -> tuple[cst.CSTNode, ...]:
        """Calls and methods that make a mask."""
        calls = [c for c in self._origins.index.calls if self._makes(c)]
        return (*calls, *(f.name for f in self._origins.index.functions if f.name.value == "compute_mask"))

    @cached_property
    def left(self) -> cst.CSTNode | None:
        """The first that may reach the loss of a fitted model."""
        return next((m for m in self.made if not (isinstance(m, cst.Call) and self._used_up(m))), None)

    def _makes(self, call: cst.Call) -> bool:
        given = argument(call, "mask_zero")
        if given is None and self._origins.called(call) == "keras.layers.Embedding":
            if any(a.star == "**" for a in call.args):
                return True
            given = next(iter([a for a in call.args if a.keyword is None][_MASK_POSITION:]), None)
        masking = self._origins.kind(call.func) is Kind.MASKING
        return masking or (given is not None and not is_off(self._origins, given.value))

    # --- behind a layer -----------------------------------------------------------------------------------------------

    @within_itself(False)
    def _used_up(self, layer: cst.BaseExpression) -> bool:
        parents = self._origins.index.parents
        holder = parents[layer]
        around = parents[holder]
        if isinstance(holder, cst.Element) and isinstance(around, cst.List | cst.Tuple):
            members = [e.value for e in around.elements]
            return any(self._uses_up(m) for m in members[members.index(layer) + 1 :])
        if isinstance(holder, cst.Call) and holder.func is layer:
            return self._flows(holder)
        if isinstance(holder, cst.Arg):
            return self._added(cst.ensure_type(around, cst.Call))
        uses = [r for r in self._reads(holder) if not isinstance(parents[r], cst.Attribute)]  # of its weights
        return bool(uses) and all(self._used_up(use) for use in uses)

    def _reads(self, statement: cst.CSTNode) -> list[cst.BaseExpression]:
        """Where what a statement gives a name is used: a layer, called or put into a model; a tensor."""
        index = self._origins.index
        found: list[cst.BaseExpression] = []
        for target in (t.target for t in statement.targets) if isinstance(statement, cst.Assign) else ():
            if isinstance(target, cst.Name):
                reads = index.names[target.value]
                found += [r for r in reads if any(d.statement is statement for d in reaching(index, r))]
            elif isinstance(target, cst.Attribute):
                found += [a for a in index.attributes[target.attr.value] if a is not target]
            else:
                return []
        return found

    def _added(self, call: cst.Call) -> bool:
        """`model.add(layer)`: what is added to the same model afterwards."""
        index = self._origins.index
        calls = index.methods("add")
        if call not in calls:
            return False
        later = [c for c in calls[calls.index(call) + 1 :] if index.scope_of(c) is index.scope_of(call) and c.args]
        return any(self._uses_up(c.args[0].value) for c in later if receiver(c).deep_equals(receiver(call)))

    def _flows(self, value: cst.CSTNode) -> bool:
        """Whether everything that is computed from a value goes through a layer that uses the mask up."""
        values = closure([value], lambda v: self._behind(v) or ())
        return all(self._behind(v) is not None for v in values)

    def _behind(self, value: cst.CSTNode) -> Sequence[cst.CSTNode] | None:
        """What has the mask of a value, one step further; None where that is not known."""
        parents = self._origins.index.parents
        holder = parents[value]
        if isinstance(holder, cst.Arg):
            call = cst.ensure_type(parents[holder], cst.Call)
            if self._uses_up(call.func):
                return []
            return [call] if self._origins.called(self._origins.made(call.func)).startswith("keras.layers.") else None
        if not isinstance(holder, cst.Assign) or not all(isinstance(t.target, cst.Name) for t in holder.targets):
            return None
        return self._reads(holder) or None

    @within_itself(False)
    def _uses_up(self, node: cst.BaseExpression) -> bool:
        layer = self._origins.made(node)
        api = self._origins.called(layer)
        if not isinstance(layer, cst.Call):
            return False
        if api == "keras.layers.Bidirectional" and layer.args:
            return self._uses_up(layer.args[0].value)
        if api in RECURRENT and not any(a.star for a in layer.args):
            sequences = argument(layer, "return_sequences")
            return sequences is None or is_off(self._origins, sequences.value)
        return api in POOLS
