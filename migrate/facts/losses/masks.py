"""Layers that hide elements from the loss, and those behind them that use the mask up before it gets there."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, argument, is_off, reaching, within_itself

_MASK_POSITION = 4  # Embedding(input_dim, output_dim, initializer, regularizer, …): from here on mask_zero may be one
_RECURRENT = frozenset(f"keras.layers.{name}" for name in ("LSTM", "GRU", "SimpleRNN", "ConvLSTM1D", "ConvLSTM2D"))
_POOLS = frozenset(
    f"keras.layers.{name}"
    for name in ("GlobalAveragePooling1D", "GlobalMaxPooling1D", "GlobalAvgPool1D", "GlobalMaxPool1D", "Flatten")
)
_STEPS = 200


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
        api = self._origins.names.api(call.func) or ""
        given = argument(call, "mask_zero")
        if given is None and api == "keras.layers.Embedding" and any(a.star == "**" for a in call.args):
            return True
        if given is None and api == "keras.layers.Embedding":
            given = next(iter([a for a in call.args if a.keyword is None][_MASK_POSITION:]), None)
        masking = self._origins.kind(call.func) is Kind.MASKING
        return masking or (given is not None and not is_off(self._origins, given.value))

    # --- behind a layer -----------------------------------------------------------------------------------------------

    @within_itself(False)
    def _used_up(self, layer: cst.BaseExpression) -> bool:
        index = self._origins.index
        holder = index.parents[layer]
        if isinstance(holder, cst.Element) and isinstance(index.parents[holder], cst.List | cst.Tuple):
            members = cst.ensure_type(index.parents[holder], cst.List | cst.Tuple).elements  # type: ignore[arg-type]
            behind = [m.value for m in members[list(members).index(holder) + 1 :]]
            return any(self._uses_up(m) for m in behind)
        if isinstance(holder, cst.Call) and holder.func is layer:
            return self._flows(holder, set())
        if isinstance(holder, cst.Arg):
            return self._added(cst.ensure_type(index.parents[holder], cst.Call))
        uses = self._named(holder)
        return bool(uses) and all(self._used_up(use) for use in uses)

    def _named(self, statement: cst.CSTNode) -> list[cst.BaseExpression]:
        """Where a layer that has a name is used: called, or put into a model; not where its weights are read."""
        index = self._origins.index
        targets = [t.target for t in statement.targets] if isinstance(statement, cst.Assign) else []
        found: list[cst.BaseExpression] = []
        for target in targets:
            if isinstance(target, cst.Name):
                reads: list[cst.BaseExpression] = [
                    r for r in index.names[target.value] if any(d.statement is statement for d in reaching(index, r))
                ]
            elif isinstance(target, cst.Attribute):
                reads = [a for a in index.attributes[target.attr.value] if a is not target]
            else:
                return []
            found += [r for r in reads if not isinstance(index.parents[r], cst.Attribute)]
        return found

    def _added(self, call: cst.Call) -> bool:
        """`model.add(layer)`: what is added to the same model afterwards."""
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "add":
            return False
        calls = [
            c
            for c in self._origins.index.calls[self._origins.index.calls.index(call) + 1 :]
            if isinstance(c.func, cst.Attribute)
            and c.func.attr.value == "add"
            and c.func.value.deep_equals(call.func.value)
            and self._origins.index.scope_of(c) is self._origins.index.scope_of(call)
        ]
        return any(self._uses_up(c.args[0].value) for c in calls if c.args)

    def _flows(self, value: cst.CSTNode, seen: set[cst.CSTNode]) -> bool:
        """Whether everything that is computed from a value goes through a layer that uses the mask up."""
        index = self._origins.index
        if value in seen or len(seen) > _STEPS:
            return value in seen
        seen.add(value)
        holder = index.parents[value]
        if isinstance(holder, cst.Arg):
            call = cst.ensure_type(index.parents[holder], cst.Call)
            return self._uses_up(call.func) or (self._is_layer(call.func) and self._flows(call, seen))
        if isinstance(holder, cst.Assign) and all(isinstance(t.target, cst.Name) for t in holder.targets):
            names = {cst.ensure_type(t.target, cst.Name).value for t in holder.targets}
            reads = [r for n in names for r in index.names[n] if any(d.statement is holder for d in reaching(index, r))]
            return bool(reads) and all(self._flows(r, seen) for r in reads)
        return False

    def _is_layer(self, node: cst.BaseExpression) -> bool:
        made = self._origins.one(node)
        call = made.node if made is not None and not made.path else None
        return isinstance(call, cst.Call) and (self._origins.names.api(call.func) or "").startswith("keras.layers.")

    @within_itself(False)
    def _uses_up(self, node: cst.BaseExpression) -> bool:
        found = self._origins.one(node)
        layer = found.node if found is not None and not found.path else None
        if not isinstance(layer, cst.Call):
            return False
        api = self._origins.names.api(layer.func) or ""
        if api == "keras.layers.Bidirectional" and layer.args:
            return self._uses_up(layer.args[0].value)
        if api in _RECURRENT and not any(a.star for a in layer.args):
            sequences = argument(layer, "return_sequences")
            return sequences is None or is_off(self._origins, sequences.value)
        return api in _POOLS
