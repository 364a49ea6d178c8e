"""The batches that a training step's values are made of, found backwards from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import libcst as cst

from ..apis import GATHERS, MAKES_ARRAY, NEW_ARRAYS
from ..program import Definition, Origins, Unknown, argument, method, nodes, reaching, receiver
from .datasets import Datasets
from .misses import Misses, Sought
from .row_axes import keeps_rows, turns
from .rows import Rows
from .take import StepRows, Take, Way


class Takes:
    """Finds the batches that expressions are made of."""

    def __init__(self, origins: Origins, datasets: Datasets) -> None:
        self._origins, self._datasets = origins, datasets
        self._rows = Rows(origins)

    def of(self, sought: Sought, calls: dict[cst.FunctionDef, cst.Call]) -> StepRows:
        """The batches in a training step's expressions, which are reached by `calls`."""
        walk = _Walk(self._origins, self._rows, Misses(self._origins, self._datasets, self._rows, sought))
        for expression in sought.expressions:
            walk.follow(expression, Way(calls))
        walk.found.missed = walk.misses.found
        return walk.found

    def others(self, taken: StepRows, calls: dict[cst.FunctionDef, cst.Call]) -> StepRows:
        """Further slices by the counters of those taken already, as those for a metric are."""
        bodies = {t.loops[0] for t in taken.takes.values() if t.counted and isinstance(t.loops[0], cst.For)}
        sliced = [(loop, n) for loop in bodies for n in nodes(loop.body) if isinstance(n, cst.Subscript)]
        for loop, node in sliced:
            take = self._rows.slice(node, Way(calls)) if node not in taken.takes else None
            if isinstance(take, Take) and take.loops[0] is loop:
                taken.takes[node] = take
                taken.rows.add(node)
        return taken


class _Walk:
    """Backwards from expressions to the batches that they are made of."""

    def __init__(self, origins: Origins, rows: Rows, misses: Misses) -> None:
        self._origins, self._rows, self.misses = origins, rows, misses
        self.found = StepRows()
        self._known: dict[tuple[cst.CSTNode, bool], bool] = {}

    def follow(self, node: cst.CSTNode, way: Way) -> bool:
        """Whether a batch is part of the expression."""
        key = (node, way.indexing)
        if key not in self._known:
            self._known[key] = False
            take = self._take(node, way)
            if isinstance(take, Unknown):
                self.misses.note(take, node, way)
                take = None
            if take is not None:
                self.found.takes[take.node] = take
                self.found.rows.add(take.node)
                self.found.arrays |= {take.array} if take.array is not None else set()
            self._known[key] = take is not None or self._parts(node, way)
            if self._known[key] and take is None and not way.indexing and turns(self._origins, node):
                self.found.turned.add(node)
        return self._known[key]

    def _any(self, each: Iterable[cst.CSTNode], way: Way) -> bool:
        found = [self.follow(one, way) for one in each]  # all of them, not up to the first
        return any(found)

    def _take(self, node: cst.CSTNode, way: Way) -> Take | Unknown | None:
        if isinstance(node, cst.Call) and self._origins.called(node) in {
            "tfdp.runtime.local_rows",
            "tfdp.runtime.local_batches",
        }:
            around = self._rows.loops(node, way)
            if way.consumer is not None and way.consumer not in around:
                around = (way.consumer, *self._rows.loops(way.consumer, way))
            return Take(node, around, sharded=True) if around else None
        sliced = self._rows.slice(node, way) if isinstance(node, cst.Subscript) else None
        if isinstance(sliced, Take):
            return sliced
        drawn = self._rows.draw(node, way)
        return drawn if drawn is not None else sliced

    def _parts(self, node: cst.CSTNode, way: Way) -> bool:
        match node:
            case cst.FunctionDef() | cst.ClassDef() | cst.Lambda():
                return False
            case cst.Name():
                known = self._origins.names.api(node) is not None
                bound = [] if known else reaching(self._origins.index, node)
                found = [self._definition(d, way) for d in bound]
                self.misses.name(node, bound, way)
                return any(found)
            case cst.Call():
                # Of what fills new arrays, row by row, the walk knows nothing: a batch may give them their size alone.
                if self._origins.called(node) in NEW_ARRAYS:
                    return False
                before = len(self.misses.found)
                batch = self._call(node, way)
                self.misses.call(node, way, self.misses.found[before:])
                return batch
            case cst.Subscript():
                chosen = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
                return self._chosen(node, node.value, chosen, way)
            case cst.Attribute():
                self.misses.attribute(node, way)
                return self.follow(node.value, way)
            case cst.ListComp() | cst.GeneratorExp():
                rows = self.follow(node.elt, way)
                self.found.rows |= {node} if rows else set()
                return rows
        return self._any(node.children, way)

    def _chosen(self, node: cst.CSTNode, array: cst.BaseExpression, by: Iterable[cst.CSTNode], way: Way) -> bool:
        """Rows of an array, should a batch of indices choose them."""
        if not self._any(by, replace(way, indexing=True)):
            return self.follow(array, way)
        before = len(self.misses.found)
        if self.follow(array, way):  # a batch, of which its own rows say what is taken
            return True
        del self.misses.found[before:]
        self.found.rows.add(node)
        self.found.arrays.add(array)
        return True

    def _definition(self, definition: Definition, way: Way) -> bool:
        function, value = definition.scope, definition.value
        if definition.kind == "param" and isinstance(function, cst.FunctionDef):
            call = way.calls.get(function)
            bound = self._origins.bind(call, function).get(definition.name) if call is not None else None
            if bound is None and call is not None and any(a.star for a in call.args):
                self.misses.note(
                    Unknown(call, "gives arguments by *, which are not followed"), call, way.out_of(function)
                )
            return bound is not None and self.follow(bound, way.out_of(function))
        if value is None or definition.kind in {"def", "class", "import"}:
            return False
        if definition.kind in {"for", "comp"}:
            if self._rows.counts(definition):
                return False
            loop = definition.statement
            if not isinstance(loop, cst.For):
                return self.follow(value, way)
            before = len(self.misses.found)
            batch = self.follow(value, replace(way, consumer=loop))
            if not batch:
                self.misses.iterated(loop, way, self.misses.found[before:])
            return batch
        for step in definition.path:
            if isinstance(value, cst.Tuple | cst.List) and 0 <= step < len(value.elements):
                value = value.elements[step].value
        return self.follow(value, way)

    def _call(self, node: cst.Call, way: Way) -> bool:
        function = self._origins.function(node.func)
        if function is not None and function not in way.calls:
            found = self._any(self._origins.index.given_back(function), way.into(function, node))
            self.found.calls |= {node} if found else set()
            return found
        api = self._origins.called(node)
        if api in GATHERS and (chosen := argument(node, "indices", GATHERS[api])) is not None:
            return self._chosen(node, node.args[0].value, [chosen.value], way)
        of_object = bool(method(node)) and not api and self.follow(receiver(node), way)
        given_rows = self._any([a.value for a in node.args], way)
        converts = api in MAKES_ARRAY and node.args and self._is_rows(node.args[0].value)
        if converts or (of_object and self._is_rows(receiver(node)) and keeps_rows(node)):
            self.found.rows.add(node)
        return of_object or given_rows

    def _is_rows(self, node: cst.BaseExpression) -> bool:
        made = [o.node for o in self._origins.of(node) if not o.path]
        return bool(made) and all(m in self.found.rows for m in made)
