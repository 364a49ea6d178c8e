"""Batches that a script takes one by one from an iterator: `next(iterator)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ..program import Origins, closure, receiver, uses, within
from .chains import Chain, never_ends


@dataclass(frozen=True)
class NextBatch:
    """A call whose value is the next batch: `next(iterator)`, or of a function of the file that returns one."""

    call: cst.Call
    chains: tuple[Chain, ...]


class NextBatches:
    """Finds such calls, and tells which of them a training step is fed by."""

    def __init__(self, origins: Origins, chains: Callable[[cst.CSTNode], tuple[Chain, ...]]) -> None:
        """`chains` tells the datasets that an expression can stand for."""
        self._origins, self._chains, self._index = origins, chains, origins.index

    @cached_property
    def all(self) -> tuple[NextBatch, ...]:
        """Every taking call over a dataset, and every call of a function that returns what it takes."""
        takes = self._origins.calls_to("builtins.next")
        iterators = [(c, c.args[0].value) for c in takes if c.args]
        iterators += [(c, receiver(c)) for c in self._index.methods("get_next", "next", "__next__") if not c.args]
        taken = (NextBatch(call, self._chains(iterator)) for call, iterator in iterators)
        found = closure((t for t in taken if t.chains), self._returned)
        return tuple({t.call: t for t in found}.values())

    def _returned(self, taken: NextBatch) -> list[NextBatch]:
        """The calls of the function around a taking call, where that returns what it takes."""
        function = self._index.enclosing_function(taken.call)
        if function is None or not self._reaches(taken.call, self._index.returns[function]):
            return []
        return [NextBatch(c, taken.chains) for c in self._origins.calls_of(function)]

    def feeding(self, node: cst.CSTNode) -> tuple[NextBatch, ...]:
        """The taking calls in the same function whose batches a training call is made of."""
        function = self._index.enclosing_function(node)
        own = [t for t in self.all if self._index.enclosing_function(t.call) is function]
        return tuple(t for t in own if self._reaches(t.call, (node,)))

    def _reaches(self, call: cst.Call, places: Iterable[cst.CSTNode]) -> bool:
        """Whether a value gets into one of the places through assignments of its function."""
        start, places = list[cst.CSTNode]([call]), tuple(places)
        return any(within(self._index, n, place) for n in closure(start, self._read) for place in places)

    def _read(self, node: cst.CSTNode) -> list[cst.Name]:
        """The names that the statement around a node gives a value."""
        return [use for d in self._index.bound[self._index.statement_of(node)] for use in uses(self._index, d)]


def endless(chains: Iterable[Chain]) -> bool:
    """Whether the datasets certainly never end."""
    chains = tuple(chains)
    return bool(chains) and all(never_ends(chain) for chain in chains)
