"""Batches that a script takes one by one from an iterator: `next(iterator)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ..program import Definition, Origins, reaching, within
from .chains import Chain, never_ends

_METHODS = frozenset({"get_next", "next", "__next__"})


@dataclass(frozen=True)
class Taken:
    """A call whose value is the next batch: `next(iterator)`, or of a function of the file that returns one."""

    call: cst.Call
    chains: tuple[Chain, ...]


class Takings:
    """Finds such calls, and tells which of them a training step is fed by."""

    def __init__(self, origins: Origins, chains: Callable[[cst.CSTNode], tuple[Chain, ...]]) -> None:
        """`chains` tells the datasets that an expression can stand for."""
        self._origins, self._chains, self._index = origins, chains, origins.index

    @cached_property
    def all(self) -> tuple[Taken, ...]:
        """Every taking call over a dataset, and every call of a function that returns what it takes."""
        found: dict[cst.Call, Taken] = {}
        todo = [t for c in self._index.calls if (t := self._taken(c)) is not None]
        while todo:
            taken = todo.pop()
            if taken.call in found:
                continue
            found[taken.call] = taken
            function = self._index.enclosing_function(taken.call)
            if function is not None and self._reaches(taken.call, self._index.returns[function]):
                todo += [Taken(c, taken.chains) for c in self._origins.calls_of(function)]
        return tuple(found.values())

    def _taken(self, call: cst.Call) -> Taken | None:
        iterator: cst.BaseExpression | None = None
        if self._origins.names.api(call.func) == "builtins.next" and call.args:
            iterator = call.args[0].value
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS and not call.args:
            iterator = call.func.value
        chains = self._chains(iterator) if iterator is not None else ()
        return Taken(call, chains) if chains else None

    def feeding(self, node: cst.CSTNode, holder: cst.CSTNode | None) -> tuple[Taken, ...]:
        """The taking calls in the same function (and inside `holder`) whose batches a training call is made of."""
        function = self._index.enclosing_function(node)
        return tuple(
            t
            for t in self.all
            if self._index.enclosing_function(t.call) is function
            and (holder is None or within(self._index, t.call, holder))
            and self._reaches(t.call, (node,))
        )

    def _reaches(self, call: cst.Call, places: Iterable[cst.CSTNode]) -> bool:
        """Whether a value gets into one of the places through assignments of its function."""
        places = tuple(places)
        seen: set[cst.CSTNode | Definition] = set()
        todo: list[cst.CSTNode] = [call]
        while todo:
            node = todo.pop()
            if any(within(self._index, node, place) for place in places):
                return True
            statement = self._index.statement_of(node)
            if statement in seen:
                continue
            seen.add(statement)
            for definition in self._bound_by(statement):
                uses = self._index.names[definition.name]
                todo += [use for use in uses if definition in reaching(self._index, use)]
        return False

    def _bound_by(self, statement: cst.CSTNode) -> list[Definition]:
        scope = self._index.scope_of(statement)
        scopes = [scope] if isinstance(scope, cst.Module) else [scope, self._index.root(scope)]
        return [d for s in scopes for ds in self._index.definitions[s].values() for d in ds if d.statement is statement]


def endless(chains: Iterable[Chain]) -> bool:
    """Whether the datasets certainly never end."""
    chains = tuple(chains)
    return bool(chains) and all(never_ends(chain) for chain in chains)
