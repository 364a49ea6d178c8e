"""Where the walk to a training step's batches ends without one, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..apis import CHOOSES_PARTS, PUTS_IN
from ..program import (
    Definition,
    Origins,
    Unknown,
    holds_weights,
    last_name,
    method,
    nodes,
    outside,
    reaching,
    uses,
    within,
)
from .datasets import Datasets
from .rows import Rows
from .take import Loop, Missed, Sureness, Way

_NEVER_DATA = frozenset({Kind.MODEL, Kind.OPTIMIZER, Kind.VARIABLE})
_PLAIN = (cst.BaseNumber, cst.UnaryOperation, cst.SimpleString)
_DEFINED = (cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.Import, cst.ImportFrom)


@dataclass(frozen=True)
class Sought:
    """A training step whose batches are looked for: what it is computed from, its loops, and the models it trains.

    `why`: where none are found, the places are asked for at which they may be made; that takes time.
    """

    expressions: tuple[cst.BaseExpression, ...]
    loops: tuple[Loop, ...]
    trained: tuple[cst.BaseExpression, ...]
    why: bool = False


class Misses:
    """Notes, in the order of the walk, the places in each step at which a batch may be made that is not followed."""

    def __init__(self, origins: Origins, datasets: Datasets, rows: Rows, sought: Sought) -> None:
        self._origins, self._datasets, self._rows = origins, datasets, rows
        self._loops = frozenset(sought.loops)
        self._trained = {o.node for t in sought.trained for o in origins.of(t)} if sought.why else set()
        self._why = sought.why
        self.found: list[Missed] = []

    def note(self, unknown: Unknown, node: cst.CSTNode, way: Way, sureness: Sureness = Sureness.TAKES) -> None:
        """A place that takes a batch in a way that is not followed, should each step come by it."""
        if not self._why:
            return
        around = {*self._rows.loops(node, way), *((way.consumer,) if way.consumer is not None else ())}
        if around & self._loops:
            self.found.append(Missed(unknown.after(way.entered), sureness))

    def iterated(self, loop: cst.For, way: Way, inside: list[Missed]) -> None:
        """A training loop over something from which no batch is known to come."""
        if self._why and loop in self._loops and all(m.sureness is Sureness.KEEPS for m in inside):
            found = self._datasets.ask(self._datasets.unwrap(loop.iter))
            why = found if isinstance(found, Unknown) else None
            if why is None or why.node is not loop.iter:
                why = Unknown(loop.iter, "is what the loop goes over", why)
            self.found.append(Missed(why.after(way.entered), Sureness.TAKES))

    def call(self, node: cst.Call, way: Way, inside: list[Missed]) -> None:
        """A call into code that is not in the file, where nothing that it is given explains the batch."""
        if not self._why or any(m.sureness < Sureness.CONVERTS for m in inside):
            return
        if self._origins.called(node) == "builtins.next" and node.args:
            self.note(self._next(node), node, way)
        elif inside and self._rows.draws(node):
            self.note(Unknown(node, "draws examples themselves; draws of their indices are followed"), node, way)
        elif inside and isinstance(node.func, cst.Name) and self._origins.names.api(node.func) is None:
            return  # one of several functions of the file, or a model: it computes with the data that it is given
        elif not self._is_trained(node.func) and (unknown := outside(self._origins, node)) is not None:
            self.note(unknown, node, way, Sureness.CONVERTS if inside else Sureness.CALLS)

    def _next(self, call: cst.Call) -> Unknown:
        iterator = call.args[0].value
        for made in (o.node for o in self._origins.of(iterator)):
            function = self._origins.function(made.func) if isinstance(made, cst.Call) else None
            if function in self._origins.index.generators:
                reason = "is a generator of this file, whose batches are followed in `for batch in …` only"
                return Unknown(call, "takes the next batch", Unknown(made, reason))
        found = self._datasets.ask(self._datasets.unwrap(iterator))
        return Unknown(call, "takes the next batch", found if isinstance(found, Unknown) else None)

    def _is_trained(self, func: cst.BaseExpression) -> bool:
        """Whether a call runs a model: what it gives is computed, and no data."""
        callees = (func, func.value) if isinstance(func, cst.Attribute) else (func,)
        made = {o.node for n in callees for o in self._origins.of(n)}
        return bool(made & self._trained) or any(holds_weights(self._origins, n) for n in callees)

    def name(self, name: cst.Name, bound: Iterable[Definition], way: Way) -> None:
        """Data that are filled while the loop runs, or are made before it and the same in each step."""
        for definition in bound if self._why else ():
            if definition.kind not in {"assign", "param"}:
                continue
            if (filled := self._filled(uses(self._origins.index, definition), way)) is not None:
                self.note(Unknown(name, "is filled step by step", filled), name, way)
                continue
            in_loop = self._loops.intersection(self._rows.loops(definition.statement, way))
            if not (in_loop or definition.scope in way.calls) and self._is_data(name):
                self._kept(name, way)

    def _kept(self, node: cst.BaseExpression, way: Way) -> None:
        """Data that stay the same: whole, or of which each step may take another part."""
        part, chosen_by = self._part(node)
        if not all(self._is_constant(n, way) for by in chosen_by for n in nodes(by)):
            self.note(Unknown(part, "takes a part of the data by an index that is not followed"), part, way)
        elif not way.entered:
            self.note(Unknown(part, "holds the same data at every step"), part, way, Sureness.KEEPS)

    def _part(self, node: cst.BaseExpression) -> tuple[cst.BaseExpression, list[cst.CSTNode]]:
        """The part of a value that is taken, `x[a:b][c]` or `tf.gather(x, c)`, and what chooses it."""
        index, chosen_by = self._origins.index, list[cst.CSTNode]()
        while True:
            parent = index.parents.get(node)
            holder = index.parents.get(parent) if isinstance(parent, cst.Arg | cst.Attribute) else None
            if isinstance(parent, cst.Subscript) and parent.value is node:
                chosen_by += parent.slice
                node = parent
            elif isinstance(holder, cst.Call) and last_name(holder.func) in CHOOSES_PARTS:
                chosen_by += [a.value for a in holder.args if a is not parent]
                node = holder
            else:
                return node, chosen_by

    def _is_constant(self, node: cst.CSTNode, way: Way) -> bool:
        """Whether a node of an index is certainly the same at every step."""
        if isinstance(node, cst.Call | cst.Attribute | cst.Subscript | cst.NamedExpr):
            return False
        bound = reaching(self._origins.index, node) if isinstance(node, cst.Name) else []
        around = {loop for d in bound for loop in self._rows.loops(d.statement, way)}
        return all(d.kind == "assign" for d in bound) and self._loops.isdisjoint(around)

    def attribute(self, node: cst.Attribute, way: Way) -> None:
        """Data that an object of the file keeps, and that are filled while it trains."""
        index = self._origins.index
        if self._why and self._origins.names.api(node) is None and self._origins.stored(node):
            places = [(a, index.enclosing_function(a)) for a in index.attributes[node.attr.value]]
            later = [a for a, function in places if function is None or function.name.value != "__init__"]
            if (filled := self._filled(later, way)) is not None:
                self.note(Unknown(node, "is filled step by step", filled), node, way)
            elif way.entered:
                self._kept(node, way)

    def _filled(self, places: Iterable[cst.BaseExpression], way: Way) -> Unknown | None:
        """Where something is put into what stands at one of the places, in the loop or in a function that it calls."""
        index = self._origins.index
        for use in places:
            parent = index.parents[use]
            inside = any(within(index, use, lp.body) for lp in self._loops)
            if not inside and not isinstance(use, cst.Attribute) and index.enclosing_function(use) not in way.calls:
                continue
            if isinstance(parent, cst.Subscript) and parent in index.subscript_stores:
                return Unknown(index.statement_of(use), "writes into it")
            if isinstance(parent, cst.Attribute) and method(call := index.parents[parent]) in PUTS_IN | {
                "push",
                "store",
            }:
                return Unknown(call, "puts more into it")
        return None

    def _is_data(self, name: cst.Name) -> bool:
        """Whether a name may hold data: neither a number, nor a model, a variable, a function or an object asked."""
        parent = self._origins.index.parents[name]
        if isinstance(parent, cst.Attribute) or (isinstance(parent, cst.Call) and parent.func is name):
            return False
        made = [o.node for o in self._origins.of(name)]
        without = any(isinstance(m, _PLAIN + _DEFINED) or m in self._trained for m in made)
        if without or holds_weights(self._origins, name):
            return False
        return not self._origins.kinds(name) & _NEVER_DATA
