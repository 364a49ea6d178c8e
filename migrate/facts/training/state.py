"""Where the variables that a loop trains are brought into step on all workers, and by which names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, certainly_bound, is_none, leading, reaching
from .loops import Loops, TrainingLoop
from .tapes import roots


class State:
    """Finds them for the training loops of a script."""

    def __init__(self, origins: Origins, loops: Loops) -> None:
        self._origins, self._index, self._loops = origins, origins.index, loops

    def places(self, loop: TrainingLoop) -> Iterator[tuple[cst.CSTNode, list[str] | None]]:
        """Where variables may be brought into step, the best place first, and the names of what the loop trains there.

        That is before all training, or, where what a name stands for is made in an outer loop, before an inner loop.
        """
        names = self._names(loop, loop.before)
        if names is not None and not self._bound(names, loop.before):
            for place in (loop.loop, *loop.outer)[::-1]:
                inner = self._names(loop, place) if place is not loop.before and self._runs_eagerly(place) else None
                if inner is not None and self._bound(inner, place):
                    yield place, inner
            names = None
        yield loop.before, names

    def _bound(self, names: Iterable[str], place: cst.CSTNode) -> bool:
        return all(certainly_bound(self._origins, name, place) for name in names)

    def _runs_eagerly(self, place: cst.CSTNode) -> bool:
        return not any(map(self._loops.is_compiled, leading(self._origins, [place])))

    def _names(self, loop: TrainingLoop, place: cst.CSTNode) -> list[str] | None:
        """Names, visible at a place before the loop, of the models and optimizers that it trains.

        None where one has no name there.
        """
        wanted: list[cst.CSTNode] = list(roots(loop.gradient.sources))
        if not wanted:
            return None
        for update in loop.gradient.updates:
            if update.kind == "keras":
                wanted.append(update.receiver)
                continue
            function = self._index.enclosing_function(update.call)
            if function is not None and self._index.enclosing_class(function) is not None:
                wanted.append(function.params.params[0])
        if not all(self._holds_variables(node) for node in wanted):
            return None
        names = [self._name_at(place, node) for node in wanted]
        if any(n is None for n in names):
            return None
        return list(dict.fromkeys(n for n in names if n is not None))

    def _holds_variables(self, node: cst.CSTNode) -> bool:
        """Whether the object is certainly a model, an optimizer or a tf.Module, and not None."""
        if isinstance(node, cst.Param):
            owner = self._owner(node)
            return owner is not None and Kind.MODEL in self._origins.base_kinds(owner)
        if any(is_none(self._origins, o.node) for o in self._origins.of(node)):
            return False
        kinds = self._origins.kinds(node)
        return bool(kinds) and kinds <= {Kind.MODEL, Kind.OPTIMIZER}

    def _name_at(self, statement: cst.CSTNode, node: cst.CSTNode) -> str | None:
        target = self._made(node)
        if not target:
            return None
        scope = self._index.scope_of(statement)
        scopes = [scope] if isinstance(scope, cst.Module) else [scope, self._index.root(scope)]
        for candidate in scopes:
            named = self._index.definitions[candidate]
            for name in (n for n, found in named.items() if all(d.kind in {"assign", "param", "with"} for d in found)):
                probe = self._index.probe(name, statement)
                if {o.node for o in self._origins.of(probe)} == target and reaching(self._index, probe):
                    return name
        return None

    def _made(self, node: cst.CSTNode) -> set[cst.CSTNode]:
        if isinstance(node, cst.Param):  # `self` of an optimizer written by hand: the calls that make it
            owner = self._owner(node)
            return {c for c in self._index.calls if owner is not None and self._origins.constructed(c) is owner}
        return {o.node for o in self._origins.of(node) if not isinstance(o.node, cst.Param)}

    def _owner(self, param: cst.Param) -> cst.ClassDef | None:
        """The class whose method has the parameter."""
        return self._index.class_around(param)
