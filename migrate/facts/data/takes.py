"""Batches that a training step takes out of arrays: slices by a loop's counter, and indices drawn at random.

Every rank takes the same batch and then its rows of it, so what chooses the rows (a counter, a permutation, a draw) may
be anything that all ranks do alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import libcst as cst

from ..program import Arithmetic, Atom, Definition, Origins, argument, nodes, reaching
from .row_axes import CONVERTS, keeps_rows, turns

_DEALT = frozenset({"tfdp.runtime.local_rows", "tfdp.runtime.local_batches"})
_GATHERS = {"tensorflow.gather": 1, "numpy.take": 1}
_SIZES = {  # position of the argument that says how many are drawn
    "randint": 2,
    "choice": 1,
    "normal": 2,
    "uniform": 2,
    "randn": 0,
    "rand": 0,
    "random": 0,
    "random_sample": 0,
    "standard_normal": 0,
    "integers": 2,
}
_INDICES = frozenset({"randint", "choice", "integers", "sample"})
_NEW = frozenset(f"numpy.{name}" for name in ("zeros", "ones", "empty", "full"))
_GENERATORS = frozenset({"numpy.random.default_rng", "numpy.random.RandomState"})
_Loop = cst.For | cst.While


@dataclass(frozen=True)
class Take:
    """An expression that takes a batch.

    node: what its rows are dealt of. size: what says how many rows, where that is one thing; sizes: the places that say
    it within the batch; header: those in its loop's range. steps: a number of steps, in which the size has no part;
    lengths: numbers of records up to which the loop runs. loops: the loops around it, from the innermost outwards,
    through the calls on the way. counted: a counter chooses the rows, else a draw. array: what it is taken from. each:
    the node gives one batch after the other.
    """

    node: cst.BaseExpression
    loops: tuple[_Loop, ...]
    size: Atom | int | None = None
    sizes: tuple[cst.BaseExpression, ...] = ()
    header: tuple[cst.BaseExpression, ...] = ()
    steps: tuple[cst.BaseExpression, ...] = ()
    lengths: tuple[cst.BaseExpression, ...] = ()
    counted: bool = False
    dealt: bool = False
    array: cst.BaseExpression | None = None
    each: bool = False


@dataclass
class Way:
    """How the walk came to an expression: the call by which it entered each function, and the loop that consumes."""

    calls: dict[cst.FunctionDef, cst.Call]
    consumer: cst.For | None = None
    indexing: bool = False

    def into(self, function: cst.FunctionDef, call: cst.Call) -> Way:
        return Way({**self.calls, function: call}, self.consumer, self.indexing)

    def consumed(self, loop: cst.For) -> Way:
        return Way(self.calls, loop, self.indexing)

    def index(self) -> Way:
        return Way(self.calls, self.consumer, indexing=True)


@dataclass
class Taken:
    """What a step takes.

    rows: expressions whose first axis is the batch's; calls: calls of the file's own functions in which it is taken;
    arrays: what the rows are taken of; turned: what makes something else than examples of the rows.
    """

    takes: dict[cst.BaseExpression, Take] = field(default_factory=dict)
    rows: set[cst.CSTNode] = field(default_factory=set)
    calls: set[cst.Call] = field(default_factory=set)
    arrays: set[cst.BaseExpression] = field(default_factory=set)
    turned: set[cst.CSTNode] = field(default_factory=set)


class Takes:
    """Finds the batches that expressions are made of."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._arithmetic = Arithmetic(origins)

    def of(self, expressions: list[cst.CSTNode], calls: dict[cst.FunctionDef, cst.Call]) -> Taken:
        """The batches in expressions, which are reached by `calls`."""
        walk = _Walk(self._origins, self)
        for expression in expressions:
            walk.follow(expression, Way(calls))
        return walk.found

    def others(self, taken: Taken, calls: dict[cst.FunctionDef, cst.Call]) -> Taken:
        """Further slices by the counters of those taken already, as those for a metric are."""
        bodies = {t.loops[0] for t in taken.takes.values() if t.counted and isinstance(t.loops[0], cst.For)}
        for body in bodies:
            for node in nodes(body.body):
                if isinstance(node, cst.Subscript) and node not in taken.takes:
                    take = self.slice(node, Way(calls))
                    if take is not None and take.loops[0] is body:
                        taken.takes[node] = take
                        taken.rows.add(node)
        return taken

    # --- slices -------------------------------------------------------------------------------------------------------

    def slice(self, node: cst.Subscript, way: Way) -> Take | None:
        """`x[i:i + B]` in `for i in range(0, n, B)`, or `x[k * B:(k + 1) * B]` in `for k in range(n // B)`."""
        first, read = node.slice[0].slice, self._arithmetic.polynomial
        if not isinstance(first, cst.Slice) or first.step is not None or first.upper is None:
            return None
        low = read(first.lower or cst.Integer("0"), way.calls)
        high = read(first.upper, way.calls)
        if low is None or high is None:
            return None
        counters = low.counters | high.counters
        extent = high.plus(low, -1)
        if len(counters) != 1 or extent.size is None:
            return None
        counter = next(iter(counters))
        call = self._arithmetic.range_of(counter)
        if call is None or any(a.star or a.keyword for a in call.args):
            return None
        bounds = [b for b in (first.lower, first.upper) if b is not None]
        sizes = [leaf for b in bounds for leaf in self._arithmetic.leaves(b, extent.size, way.calls)]
        around = self._loops_of(counter, way)
        if not sizes or not around:
            return None
        args = [a.value for a in call.args]
        once = self._arithmetic.atom(counter)
        take = Take(node, around, extent.size, tuple(sizes), counted=True, array=node.value)
        if len(args) == 3:
            step = read(args[2], way.calls)
            rest = low.plus(once, -1)
            return self._by_starts(take, args, way) if step == extent and not rest.counters else None
        rest = low.plus(once.times(extent), -1)
        shifted = rest == extent or rest == extent.times(self._arithmetic.number(-1)) or not rest.terms
        return self._by_number(take, args, way) if shifted and args else None

    def _by_starts(self, take: Take, args: list[cst.BaseExpression], way: Way) -> Take | None:
        assert take.size is not None
        step = self._arithmetic.leaves(args[2], take.size, way.calls)
        inside = self._divisors(args[1], take, way, (cst.Subtract, cst.Modulo, cst.FloorDivide, cst.Multiply))
        if inside is None or not step:
            return None
        return replace(take, header=(*step, *inside), lengths=() if inside else (args[1],))

    def _by_number(self, take: Take, args: list[cst.BaseExpression], way: Way) -> Take | None:
        stop = args[-1]
        inside = self._divisors(stop, take, way, (cst.FloorDivide, cst.Divide))
        if inside is None:
            return None
        if not inside and isinstance(stop, cst.Name):
            inside = self._named_number(stop, take, way)
        from_zero = len(args) == 1 or (isinstance(args[0], cst.Integer) and args[0].value == "0")
        if not inside and not from_zero:
            return None
        return replace(take, header=tuple(inside), steps=() if inside else (stop,))

    def _divisors(
        self, node: cst.BaseExpression, take: Take, way: Way, operators: tuple[type[cst.BaseBinaryOp], ...]
    ) -> list[cst.BaseExpression] | None:
        """The places in a loop's range that are the size; None where one of them has another part than a divisor's."""
        assert take.size is not None
        found = self._arithmetic.leaves(node, take.size, way.calls)
        for leaf in found:
            parent = self._origins.index.parents[leaf]
            right = isinstance(parent, cst.BinaryOperation) and parent.right is leaf
            if not right or not isinstance(cst.ensure_type(parent, cst.BinaryOperation).operator, operators):
                if isinstance(take.size, int):
                    continue  # the same number, but another one
                return None
        return [n for n in found if isinstance(self._origins.index.parents[n], cst.BinaryOperation)]

    def _named_number(self, stop: cst.Name, take: Take, way: Way) -> list[cst.BaseExpression]:
        """The size in `n_batches = len(x) // B`, where that name serves the training loop only."""
        found, index = reaching(self._origins.index, stop), self._origins.index
        if len(found) != 1 or found[0].kind != "assign" or found[0].path or not isinstance(take.size, Definition):
            return []
        value = found[0].value
        outermost = take.loops[-1]
        inside = all(outermost in index.ancestors(n) for n in index.names[stop.value] if found[0] in reaching(index, n))
        if not inside or not isinstance(value, cst.BaseExpression):
            return []
        return self._divisors(value, take, way, (cst.FloorDivide, cst.Divide)) or []

    def _loops_of(self, counter: Definition, way: Way) -> tuple[_Loop, ...]:
        if isinstance(counter.statement, cst.For) and counter.kind == "for":
            return (counter.statement, *self.loops(counter.statement, way))
        return (way.consumer, *self.loops(way.consumer, way)) if way.consumer is not None else ()

    def loops(self, node: cst.CSTNode, way: Way) -> tuple[_Loop, ...]:
        """The loops around a node, from the innermost outwards, through the calls on the way to it."""
        around: list[_Loop] = list(self._origins.index.loops_around(node))
        function = self._origins.index.enclosing_function(node)
        if function is not None and function in way.calls:
            outer = Way({f: c for f, c in way.calls.items() if f is not function}, way.consumer)
            if function in self._origins.index.generators and way.consumer is not None:
                around += [way.consumer, *self.loops(way.consumer, outer)]
            else:
                around += self.loops(way.calls[function], outer)
        return tuple(dict.fromkeys(around))

    def counts(self, definition: Definition) -> bool:
        """Whether a binding is a loop's counter."""
        return self._arithmetic.range_of(definition) is not None

    # --- draws --------------------------------------------------------------------------------------------------------

    def draw(self, node: cst.CSTNode, way: Way) -> Take | None:
        """`np.random.randint(0, n, B)` and the like in a loop, as an index; `np.random.permutation(n)[:B]`."""
        around = self.loops(node, way)
        if not around or not way.indexing:
            return None
        if isinstance(node, cst.Subscript):
            first = node.slice[0].slice
            mixed = isinstance(node.value, cst.Call) and self._drawn(node.value) == "permutation"
            if not mixed or not isinstance(first, cst.Slice) or first.lower or first.step or first.upper is None:
                return None
            size: cst.BaseExpression = first.upper
        elif isinstance(node, cst.Call) and (name := self._drawn(node)) in _INDICES:
            keyword, position = ("k", 1) if name == "sample" else ("size", _SIZES[name])
            given = argument(node, keyword, position)
            if given is None:
                return None
            size = given.value
        else:
            return None
        if isinstance(size, cst.Tuple | cst.List):
            if len(size.elements) != 1:
                return None
            size = size.elements[0].value
        read = self._arithmetic.polynomial(size, way.calls)
        assert isinstance(node, cst.BaseExpression)
        return Take(node, around, read.size if read is not None else None, (size,))

    def _drawn(self, call: cst.Call) -> str:
        """The name of the drawing function, where all ranks draw from it alike; else an empty text."""
        api = self._origins.names.api(call.func)
        if api is not None:
            module, _, name = api.rpartition(".")
            return name if module in {"numpy.random", "random"} else ""
        if not isinstance(call.func, cst.Attribute):
            return ""
        made = [o.node for o in self._origins.of(call.func.value)]
        known = [isinstance(m, cst.Call) and self._origins.names.api(m.func) in _GENERATORS for m in made]
        return call.func.attr.value if known and all(known) else ""


class _Walk:
    """Backwards from expressions to the batches that they are made of."""

    def __init__(self, origins: Origins, takes: Takes) -> None:
        self._origins, self._takes = origins, takes
        self.found = Taken()
        self._known: dict[tuple[cst.CSTNode, bool], bool] = {}

    def follow(self, node: cst.CSTNode, way: Way) -> bool:
        """Whether a batch is part of the expression."""
        key = (node, way.indexing)
        if key not in self._known:
            self._known[key] = False
            take = self._take(node, way)
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

    def _take(self, node: cst.CSTNode, way: Way) -> Take | None:
        if isinstance(node, cst.Call) and self._origins.names.api(node.func) in _DEALT:
            around = self._takes.loops(node, way)
            if way.consumer is not None and way.consumer not in around:
                around = (way.consumer, *self._takes.loops(way.consumer, way))
            return Take(node, around, dealt=True) if around else None
        if isinstance(node, cst.Subscript) and (taken := self._takes.slice(node, way)) is not None:
            return taken
        return self._takes.draw(node, way)

    def _parts(self, node: cst.CSTNode, way: Way) -> bool:
        match node:
            case cst.FunctionDef() | cst.ClassDef() | cst.Lambda():
                return False
            case cst.Name():
                known = self._origins.names.api(node) is not None
                bound = [] if known else reaching(self._origins.index, node)
                found = [self._definition(d, way) for d in bound]
                return any(found)
            case cst.Call():
                # Of what fills new arrays, row by row, the walk knows nothing: a batch may give them their size alone.
                return (self._origins.names.api(node.func) or "") not in _NEW and self._call(node, way)
            case cst.Subscript():
                if self._any([e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)], way.index()):
                    self.found.rows.add(node)
                    self.found.arrays.add(node.value)
                    return True
                return self.follow(node.value, way)
            case cst.Attribute():
                return self.follow(node.value, way)
            case cst.ListComp() | cst.GeneratorExp():
                return self._marked(node, self.follow(node.elt, way))
        return self._any(node.children, way)

    def _marked(self, node: cst.CSTNode, rows: bool) -> bool:
        self.found.rows |= {node} if rows else set()
        return rows

    def _definition(self, definition: Definition, way: Way) -> bool:
        function, value = definition.scope, definition.value
        if definition.kind == "param" and isinstance(function, cst.FunctionDef):
            call = way.calls.get(function)
            bound = self._origins.bind(call, function).get(definition.name) if call is not None else None
            rest = {f: c for f, c in way.calls.items() if f is not function}
            return bound is not None and self.follow(bound, Way(rest, way.consumer, way.indexing))
        if value is None or definition.kind in {"def", "class", "import"}:
            return False
        if definition.kind in {"for", "comp"}:
            if self._takes.counts(definition):
                return False
            loop = definition.statement
            return self.follow(value, way.consumed(loop) if isinstance(loop, cst.For) else way)
        for step in definition.path:
            if isinstance(value, cst.Tuple | cst.List) and 0 <= step < len(value.elements):
                value = value.elements[step].value
        return self.follow(value, way)

    def _call(self, node: cst.Call, way: Way) -> bool:
        index = self._origins.index
        function = self._origins.function(node.func)
        if function is not None and function not in way.calls:
            given: list[cst.CSTNode] = [r.value for r in index.returns[function] if r.value is not None]
            if function in index.generators:
                made = [n for n in nodes(function.body) if isinstance(n, cst.Yield)]
                given = [n.value for n in made if n.value is not None and index.enclosing_function(n) is function]
            found = self._any(given, way.into(function, node))
            self.found.calls |= {node} if found else set()
            return found
        api = self._origins.names.api(node.func) or ""
        place = _GATHERS.get(api)
        if place is not None and (chosen := argument(node, "indices", place)) is not None:
            if self._marked(node, self.follow(chosen.value, way.index())):
                self.found.arrays.add(node.args[0].value)
                return True
            return self._any(node.args[:1], way)
        receiver = isinstance(node.func, cst.Attribute) and not api and self.follow(node.func.value, way)
        given_rows = self._any([a.value for a in node.args], way)
        if api in CONVERTS and node.args and self._is_rows(node.args[0].value):
            self.found.rows.add(node)
        if receiver and isinstance(node.func, cst.Attribute) and self._is_rows(node.func.value) and keeps_rows(node):
            self.found.rows.add(node)
        return receiver or given_rows

    def _is_rows(self, node: cst.BaseExpression) -> bool:
        made = [o.node for o in self._origins.of(node) if not o.path]
        return bool(made) and all(m in self.found.rows for m in made)
