"""Batches as long as their longest row, made after the rows were sharded: each worker's has a length of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ..data import Chain, ShardPoint
from ..program import Origins, Problem, argument, method, nodes
from ..training import TrainingLoop

_REASON = "this makes rows as long as the longest of a worker's batch, and the longest differs by worker"
_NEXT = "give it a length (shape=, maxlen=, output_sequence_length=), or do it before the rows are batched"


class RowLengths:
    """Finds what gives the rows of a batch their common length."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    def problems(
        self, chains: Iterable[Chain], shard_points: Iterable[ShardPoint], loops: Iterable[TrainingLoop], batch: str
    ) -> list[Problem]:
        """In the stages of training chains after the batches, and in the steps of training loops."""
        whole = {d.node for d in shard_points if d.batches and (d.rows or batch == "global")}
        own = [c for c in chains if whole.isdisjoint(c.nodes)]
        places = [*(p for chain in own for p in self._mapped(chain)), *(p for loop in loops for p in self._step(loop))]
        found = dict.fromkeys(call for place in places for call in nodes(place) if isinstance(call, cst.Call))
        return [Problem("TFDP010", call, _REASON, _NEXT) for call in found if self._by_the_longest(call)]

    def _mapped(self, chain: Chain) -> Iterator[cst.CSTNode]:
        """What is mapped over batches."""
        yield from (self._origins.function(given) or given for given in chain.mapped_over_batches)

    def _step(self, loop: TrainingLoop) -> Iterator[cst.CSTNode]:
        """The functions on the way from the loop to the gradient, and those that take the batch."""
        yield loop.loop.body
        inside = (self._origins.index.enclosing_function(call) for call in loop.calls[:-1])
        taking = (self._origins.function(call.func) for call in loop.taking)
        yield from (function.body for function in (*inside, *taking) if function is not None)

    def _by_the_longest(self, call: cst.Call) -> bool:
        api = self._origins.called(call)
        if api.startswith("keras.") and api.endswith(".pad_sequences"):
            return argument(call, "maxlen", 1) is None
        if not api and method(call) == "to_tensor":
            return argument(call, "shape", 2) is None
        return api == "tensorflow.sparse.to_dense" or self._of_words(call)

    def _of_words(self, call: cst.Call) -> bool:
        """A call of a `TextVectorization` that was given no length."""
        layers = [o.node for o in self._origins.of(call.func) if not o.path and isinstance(o.node, cst.Call)]
        if {self._origins.called(n).rpartition(".")[2] for n in layers} != {"TextVectorization"}:
            return False
        modes = [argument(n, "output_mode", 4) for n in layers]
        as_words = any(m is None or getattr(m.value, "evaluated_value", "int") == "int" for m in modes)
        return as_words and any(argument(n, "output_sequence_length", 5) is None for n in layers)
