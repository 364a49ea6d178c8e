"""What makes values of each example out of others of its batch, by anything on the way from the batch to the loss.

A worker's examples then meet other ones than in one process. Keras' BatchNormalization is a known difference instead
(SEMANTICS.md). Where facts cannot tell, a model is left to the runtime, which tries it. Code of this file outside the
model is refused then; what another file's functions do there is taken to keep examples apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import libcst as cst

from ...catalogue import Kind
from ..apis import ARRAY_LIBRARIES, CALLED, GIVES_ROWS_TO, LAMBDA, OF_CALLS, PARTIAL, RUNS_PYTHON
from ..data import Chain, Datasets, ShardPoint
from ..keras import Fit
from ..program import (
    Origins,
    Problem,
    Unknown,
    argument,
    is_network,
    method,
    nodes,
    outside,
    params_of,
    reaching,
    receiver,
    within,
)
from ..rowwise import BATCH, Of, Rowwise, Value, batch_axis, because, given_to, wrappers
from ..training import TrainingLoop

_REASON = "this mixes the examples of a batch: one example's result depends on others, and a worker has only its share"
_MOVED = "this moves examples to other places of their batch, so that each is trained with what belongs to another one"
_NEXT = (
    "make it of each example alone (axis=1 and so on), of all data before training, or write "
    "`# tfdp: ignore[TFDP090]` here if it may be made of a worker's examples"
)
_OF_TENSORS = frozenset({"shape", "dtype", "ndim", "get_shape", "numpy"})
UNSETTLED = "cannot tell whether this keeps the examples of a batch apart; a worker has only its share of them"
_DEPTH = 8
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
        *,
        batches: Collection[cst.CSTNode] = frozenset(),
        arrays: Iterable[cst.CSTNode] = (),
    ) -> None:
        """`arrays` are what models are fitted to, that is no dataset."""
        self._origins, self._index = origins, origins.index
        whole = {d.node for d in shard_points if d.batches}
        chains = tuple(chains)
        own = [c for c in chains if whole.isdisjoint(c.nodes)]
        self._mapped = self._functions(value for chain in own for value in self._over_batches(chain))
        self._layers = self._networks()
        self._given_to_layers = self._functions(self._handed())
        self._steps = [f for f in self._index.functions if f.name.value == "train_step" and self._is_model(f)]
        losses = (a.value for c in self._index.methods("compile") if (a := argument(c, "loss", 1)) is not None)
        self._losses = self._functions(each for loss in losses for each in self._elements(loss))
        first = self._first(datasets, chains, batches, arrays)
        self._libraries = list(self._of_libraries())
        single = replace(BATCH, several=False)
        given: dict[cst.CSTNode, Value] = dict(self._parameters(first))
        given.update((library, single) for library in self._libraries)
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

    def of_losses(self, targets: Iterable[cst.CSTNode], whole: AbstractSet[cst.CSTNode]) -> list[Problem]:
        """The same of losses, those included that models are compiled with; `whole` is taken over all workers."""
        nodes = [*targets, *(value for function in self._losses for value in self._index.returned(function))]
        problems = list[Problem]()
        for node in nodes:
            value = self._rows.of(node)
            if value.why is None or not whole.isdisjoint(u.node for u in value.why.links):
                continue
            if value.of is Of.MIXED:
                problems.append(self._problem(value.why))
        return list({p.node: p for p in problems}.values())

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
        for applied in map(self._rows.applied, self._libraries):
            if applied.of in {Of.MIXED, Of.MOVED}:
                yield self._problem(applied.why, _MOVED if applied.of is Of.MOVED else _REASON)
        for function in self._mapped:
            for result in self._index.returned(function):
                yield from self._of_result(result, alone=False)

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
        for element, value in zip(elements, values, strict=True):
            if value.of is Of.MIXED and value.why is not None:
                yield self._problem(value.why)
            if value.of is Of.UNKNOWN and self._is_followed(value) and not (alone and self._is_tried(value)):
                yield self._not_told(element, value)
        moved = [v for v in values if v.of is Of.MOVED and v.why is not None]
        stays = alone or any(v.of is Of.ROWS for v in values)
        if moved and (stays or len({v.order for v in moved}) > 1):
            for value in moved:
                yield self._problem(value.why, _MOVED)

    def _not_told(self, node: cst.CSTNode, value: Value) -> Problem:
        found = Problem.since(self._index, "TFDP090", node, UNSETTLED, value.why, _NEXT)
        return replace(found, headline=UNSETTLED)

    def _is_tried(self, value: Value) -> bool:
        """Whether the runtime can try a model, though facts do not tell: not where Python runs in it."""
        last = value.why.links[-1].node if value.why is not None else None
        return last is None or self._origins.called(last) not in RUNS_PYTHON

    def _is_followed(self, value: Value) -> bool:
        """Whether it is code of this file, or of the libraries of arrays, that is not understood."""
        last = value.why.links[-1].node if value.why is not None else None
        if isinstance(last, cst.Param):
            return bool(last.star)  # what calls it may be another file
        if not isinstance(last, cst.Call) or self._origins.called(last).partition(".")[0] in ARRAY_LIBRARIES:
            return True
        return not self._leads_outside(last, 0)

    def _leads_outside(self, call: cst.Call, depth: int) -> bool:
        """Whether another file's code makes what is called, or that of which it is a method."""
        if outside(self._origins, call) is not None:
            return True
        made = self._origins.of(call.func.value) if isinstance(call.func, cst.Attribute) and depth < _DEPTH else ()
        return any(isinstance(o.node, cst.Call) and self._leads_outside(o.node, depth + 1) for o in made)

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
                several = known is None and not self._is_tensor(param, function)
                yield param, replace(found, base=param if found.base is not None else None, several=several)
        for handed in self._given_to_layers:
            known = given_to(self._origins, handed, first)
            for param in params_of(handed)[self._origins.takes_self(handed) :][:1]:
                several = known is None and self._may_be_list(handed) and not self._is_tensor(param, handed)
                found = known or BATCH
                yield param, replace(found, base=param if found.base is not None else None, several=several)
        for mapped in self._mapped:
            params = [p for p in params_of(mapped)[self._origins.takes_self(mapped) :] if p.default is None]
            star = mapped.params.star_arg
            if isinstance(star, cst.Param):
                yield star, replace(BATCH, base=star, several=True)
            alone = len(params) == 1
            yield from ((p, replace(BATCH, base=p, several=alone and not self._is_tensor(p, mapped))) for p in params)
        for loss in self._losses:
            params = params_of(loss)[self._origins.takes_self(loss) :]
            yield from ((p, replace(BATCH, base=p, several=False)) for p in params[:2])
        for function in self._steps:
            yield from ((p, replace(BATCH, base=p)) for p in params_of(function)[1:2])

    def _may_be_list(self, handed: _Function) -> bool:
        """Whether a function that a layer is given may be called with several tensors: of a Lambda that is."""
        lambdas = [c for c in self._origins.calls_to(LAMBDA) if handed in self._functions(a.value for a in c.args[:1])]
        calls = (c for c in self._index.calls if self._origins.made(c.func) in lambdas)
        given = [self._origins.made(a.value) for c in calls for a in c.args[:1]]
        return any(not isinstance(g, cst.Call | cst.BinaryOperation) for g in given)

    def _is_tensor(self, param: cst.Param, function: _Function) -> bool:
        """Whether what a function does with a parameter is done with tensors alone, and not with lists of them."""
        index, name = self._index, param.name.value
        uses = (u for u in index.names[name] if any(d.value is param for d in reaching(index, u)))
        around = ((u, index.parents[u]) for u in uses if within(index, u, function.body))
        return any(
            isinstance(p, cst.BinaryOperation | cst.UnaryOperation)
            or (isinstance(p, cst.Attribute) and p.value is use and p.attr.value in _OF_TENSORS)
            for use, p in around
        )

    def _first(
        self,
        datasets: Datasets,
        chains: Iterable[Chain],
        batches: Collection[cst.CSTNode],
        arrays: Iterable[cst.CSTNode],
    ) -> Value:
        """How many axes the examples have that are trained on, where arrays give them and nothing changes them."""
        plain = Rowwise(self._origins, datasets, {}, batches)
        parts = ([plain.batch(chain, path) for path in ((0,), ())] for chain in chains)
        values = [next((v for v in each if v.base is None), each[0]) for each in parts]
        values += [plain.of(node) for node in (*batches, *arrays)]
        ranks = {v.rank if v.base is None and v.rank else None for v in values}
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
        return self._origins.kinds(call.func) == {Kind.MODEL}

    def _handed(self) -> Iterator[cst.BaseExpression]:
        """The functions that layers are given: activations, and what a Lambda runs."""
        for call in self._index.calls:
            name = self._origins.called(call)
            if not name.startswith("keras.layers."):
                continue
            first = call.args[:1] if name in GIVES_ROWS_TO else call.args[1:]
            yield from (a.value for a in call.args if _takes_rows(a) or (a in first and a.keyword is None))

    def _of_libraries(self) -> Iterator[cst.BaseExpression]:
        """The functions of libraries that layers are given, also with some of their arguments."""
        for made in {o.node for value in self._handed() for o in self._origins.of(value)}:
            some = isinstance(made, cst.Call) and self._origins.called(made) == PARTIAL and bool(made.args)
            func = cst.ensure_type(made, cst.Call).args[0].value if some else made
            if isinstance(made, cst.BaseExpression) and self._origins.names.api(func) is not None:
                yield made

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
                if isinstance(made, cst.FunctionDef):
                    found |= dict.fromkeys(wrappers(self._origins, made))
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
