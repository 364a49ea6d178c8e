"""What makes values of each example out of others of its batch, by anything on the way from the batch to the loss.

A worker's examples then meet other ones than in one process. Keras' BatchNormalization is a known difference instead
(SEMANTICS.md). Where facts cannot tell, the model is left to the runtime, which tries it; code outside the model is
refused only where it is seen to mix.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

import libcst as cst

from ...catalogue import Kind
from ..apis import CALLED, GIVES_ROWS_TO, OF_CALLS, PARTIAL
from ..data import Chain, Datasets, ShardPoint
from ..keras import Fit
from ..program import Origins, Problem, Unknown, argument, is_network, method, nodes, params_of, receiver
from ..rowwise import BATCH, Of, Rowwise, Value, batch_axis, because, given_to, is_free
from ..training import TrainingLoop

_REASON = "this makes values of each example out of other examples of its batch, of which a worker has its own only"
_MOVED = "the examples of this do not stand where those that go with them do: each meets another one of its batch"
_NEXT = (
    "make it of each example alone (axis=1 and so on), of all data before training, or write "
    "`# tfdp: ignore[TFDP090]` here if it may be made of a worker's examples"
)
_Function = cst.FunctionDef | cst.Lambda


@dataclass(frozen=True)
class Unsettled:
    """A model or layer of which facts do not tell whether it keeps examples apart, with the reason."""

    node: cst.CSTNode
    why: Unknown


class Mixing:
    """Asks everything on the way from the batch to the loss whether it keeps examples apart."""

    def __init__(
        self,
        origins: Origins,
        datasets: Datasets,
        chains: Iterable[Chain],
        shard_points: Iterable[ShardPoint],
        batches: Collection[cst.CSTNode] = frozenset(),
    ) -> None:
        self._origins, self._index = origins, origins.index
        whole = {d.node for d in shard_points if d.batches}
        chains = tuple(chains)
        own = [c for c in chains if whole.isdisjoint(c.nodes)]
        self._mapped = self._functions(value for chain in own for value in self._over_batches(chain))
        self._layers = self._networks()
        self._given_to_layers = self._functions(self._handed())
        self._steps = [f for f in self._index.functions if f.name.value == "train_step" and self._is_model(f)]
        self._plain = Rowwise(origins, datasets, {})
        first = self._first(chains)
        given = dict(self._parameters(first))
        self._rows = Rowwise(origins, datasets, given, batches)

    # --- what is asked ------------------------------------------------------------------------------------------------

    def problems(self, fits: Iterable[Fit], loops: Iterable[TrainingLoop]) -> list[Problem]:
        """Each place once."""
        found = [*self._of_axes(), *self._of_functions(), *self._of_steps()]
        calls = [c for loop in loops for c in loop.calls if isinstance(c, cst.Call) and c is not loop.gradient.call]
        calls += [f.call for f in fits if f.method == "train_on_batch"]
        found += [p for call in dict.fromkeys(calls) for p in self._of_arguments(call)]
        return list({p.node: p for p in reversed(found)}.values())[::-1]

    def of_calls(self, calls: Iterable[cst.CSTNode]) -> list[Problem]:
        """The same of what models are given inside a training step."""
        models = [c for c in calls if isinstance(c, cst.Call) and self._is_called_model(c)]
        found = (p for c in models for p in self._of_arguments(c))
        return list({p.node: p for p in found}.values())

    @property
    def unsettled(self) -> list[Unsettled]:
        """Models and layers of which facts do not tell it, each once."""
        found: dict[cst.CSTNode, Unsettled] = {}
        for owner, values in self._model_values():
            for value in values:
                asked = self._rows.of(value)
                why = because(asked) if asked.of in {Of.UNKNOWN, Of.ROWS} else None
                if asked.of is Of.UNKNOWN and why is None:
                    why = Unknown(value, "is not followed")
                if why is not None:
                    found.setdefault(owner, Unsettled(owner, why))
        return sorted(found.values(), key=lambda u: self._index.order.get(u.node, 0))

    # --- places -------------------------------------------------------------------------------------------------------

    def _of_axes(self) -> Iterator[Problem]:
        """Keras' layers over the axis of the batch."""
        for call in self._index.calls:
            if self._origins.called(call).startswith("keras.layers.") and batch_axis(self._origins, call) is not None:
                yield self._problem(Unknown(call, "goes along the axis of the batch"))

    def _of_functions(self) -> Iterator[Problem]:
        for _, values in self._model_values():
            for value in values:
                yield from self._of_result(value, alone=True)
        for function in self._mapped:
            for value in self._index.returned(function):
                yield from self._of_result(value, alone=False)

    def _model_values(self) -> Iterator[tuple[cst.CSTNode, list[cst.BaseExpression]]]:
        """What models, layers and the functions in them give."""
        for function in (*self._layers, *self._given_to_layers):
            owner = self._index.enclosing_class(function) if isinstance(function, cst.FunctionDef) else None
            yield owner or function, self._index.returned(function)
        for call in self._origins.calls_to("keras.Model"):
            outputs = argument(call, "outputs", 1)
            if outputs is not None:
                yield call, [outputs.value]

    def _of_steps(self) -> Iterator[Problem]:
        """What a `train_step` of the file's own gives Keras' own."""
        above = (c for c in self._index.methods("train_step") if self._origins.is_super(receiver(c)))
        for call in above:
            yield from self._of_arguments(call)

    def _of_arguments(self, call: cst.Call) -> Iterator[Problem]:
        """What a step, or a model, is given."""
        elements = [e for a in call.args for e in self._elements(a.value)]
        yield from self._of_elements(elements, alone=False)

    def _of_result(self, value: cst.BaseExpression, alone: bool) -> Iterator[Problem]:
        yield from self._of_elements(self._elements(value), alone)

    def _of_elements(self, elements: list[cst.BaseExpression], alone: bool) -> Iterator[Problem]:
        """Values that go on together: `alone` those that nothing else may go with than the batch as it came."""
        values = [self._rows.of(e) for e in elements]
        for value in values:
            if value.of is Of.MIXED and value.why is not None:
                yield self._problem(value.why)
        moved = [v for v in values if v.of is Of.MOVED and v.why is not None]
        stays = alone or any(v.of is Of.ROWS for v in values)
        if moved and (stays or len({v.order for v in moved}) > 1):
            for value in moved:
                yield self._problem(value.why, _MOVED)

    def _problem(self, why: Unknown | None, reason: str = _REASON) -> Problem:
        assert why is not None
        return Problem.since(self._index, "TFDP090", why.node, reason, why, _NEXT)

    def _elements(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The values that a tuple, list or dictionary holds."""
        made = self._origins.made(node)
        if not isinstance(made, cst.Tuple | cst.List | cst.Dict):
            return [node]
        return [found for e in made.elements for found in self._elements(e.value)]

    # --- what is a batch ----------------------------------------------------------------------------------------------

    def _parameters(self, first: Value) -> Iterator[tuple[cst.CSTNode, Value]]:
        """The parameters that are given batches."""
        for function in self._layers:
            owner = self._index.enclosing_class(function)
            params = [p for p in params_of(function)[1:] if p.name.value not in OF_CALLS]
            known = given_to(self._origins, owner, first) if owner is not None else None
            at_first = first if owner is not None and self._is_model(function) else None
            for param in params[:1]:
                found = known or at_first or replace(BATCH, base=param)
                yield param, replace(found, base=param if found.base is not None else None, several=known is None)
        for handed in self._given_to_layers:
            for param in params_of(handed)[:1]:
                yield param, replace(BATCH, base=param)
        for mapped in self._mapped:
            owned = isinstance(mapped, cst.FunctionDef) and self._index.enclosing_class(mapped) is not None
            params = [p for p in params_of(mapped)[owned:] if p.default is None]
            yield from ((p, replace(BATCH, base=p, several=len(params) == 1)) for p in params)
        for function in self._steps:
            yield from ((p, replace(BATCH, base=p)) for p in params_of(function)[1:2])

    def _first(self, chains: Iterable[Chain]) -> Value:
        """How many axes the examples have that are trained on, where arrays give them and nothing changes them."""
        ranks: set[int | None] = set()
        for chain in chains:
            source = chain.source
            changed = any(link.stage == "map" for link in chain.links)
            given = source.args[0].value if source.args and not changed else None
            members = self._elements(given) if given is not None else []
            value = self._plain.of(members[0]) if members else None
            ranks.add(value.rank if value is not None and value.base is None and is_free(value) else None)
        rank = ranks.pop() if len(ranks) == 1 else None
        return Value(Of.ROWS, rank=rank) if rank else BATCH

    # --- functions ----------------------------------------------------------------------------------------------------

    def _networks(self) -> list[cst.FunctionDef]:
        found = [f for f in self._index.functions if f.name.value in CALLED]
        owners = ((f, self._index.enclosing_class(f)) for f in found)
        return [f for f, owner in owners if owner is not None and is_network(self._origins, owner)]

    def _is_model(self, function: cst.FunctionDef) -> bool:
        owner = self._index.enclosing_class(function)
        return owner is not None and Kind.MODEL in self._origins.base_kinds(owner)

    def _is_called_model(self, call: cst.Call) -> bool:
        owner = self._origins.class_of(call.func)
        if owner is not None:
            return is_network(self._origins, owner)
        return not method(call) and self._origins.kinds(call.func) == {Kind.MODEL}

    def _handed(self) -> Iterator[cst.BaseExpression]:
        """The functions that layers are given: activations, and what a Lambda runs."""
        for call in self._index.calls:
            name = self._origins.called(call)
            if not name.startswith("keras.layers."):
                continue
            first = call.args[:1] if name in GIVES_ROWS_TO else call.args[1:]
            yield from (a.value for a in call.args if _takes_rows(a) or (a in first and a.keyword is None))

    def _functions(self, values: Iterable[cst.BaseExpression]) -> list[_Function]:
        """The functions of the file that values are, also as an object that is called, or with arguments given."""
        found: dict[_Function, None] = {}
        for value in values:
            for origin in self._origins.of(value):
                made = origin.node
                if self._origins.called(made) == PARTIAL and isinstance(made, cst.Call) and made.args:
                    made = self._origins.made(made.args[0].value)
                owner = self._origins.constructed(made)
                made = (self._origins.method(owner, CALLED[0]) if owner is not None else None) or made
                if isinstance(made, cst.FunctionDef | cst.Lambda):
                    found[made] = None
        return list(found)

    def _over_batches(self, chain: Chain) -> Iterator[cst.BaseExpression]:
        """What is mapped over batches, also by a function that the dataset is given to."""
        yield from chain.mapped_over_batches
        for link, of_batches in chain.stages:
            if of_batches and link.stage == "apply" and link.call.args:
                for function in self._functions([link.call.args[0].value]):
                    inside = [n for r in self._index.returned(function) for n in nodes(r)]
                    calls = (n for n in inside if isinstance(n, cst.Call) and method(n) == "map" and n.args)
                    yield from (call.args[0].value for call in calls)


def _takes_rows(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value.endswith(("activation", "function"))
