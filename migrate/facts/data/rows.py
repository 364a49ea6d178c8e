"""Batches that a training step takes out of arrays: slices by a loop's counter, and indices drawn at random.

Every rank takes the same batch and then its rows of it, so what chooses the rows (a counter, a permutation, a draw) may
be anything that all ranks do alike.
"""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from ..apis import DRAW_SIZES, DRAWS_INDICES
from ..program import (
    Arithmetic,
    Definition,
    Origins,
    Polynomial,
    Unknown,
    argument,
    assigned,
    nodes,
    reaching,
    uses,
    within,
    within_itself,
)
from .drawing import drawn
from .take import Loop, Take, Way

_BY_OTHER = "takes rows that no loop's counter chooses"
_NOT_PLAIN = "takes rows by a counter, but not as `x[i:i + size]` or `x[k * size:(k + 1) * size]`"
_UNSIZED = "takes rows by a loop's counter, but how many is not one number or name"
_SAME_INDICES = (
    "builtins.list",
    "builtins.sorted",
    "numpy.array",
    "numpy.asarray",
    "numpy.sort",
    "tensorflow.constant",
)
_CHOOSE = ("builtins.len", "builtins.print", "numpy.take", "tensorflow.gather")
_STEP = "is the step of the counter"
_USED_OTHERWISE = "is where the loop ends, and uses the batch size other than to divide or subtract by it"


class Rows:
    """Recognises the expressions that take rows out of arrays."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._arithmetic = Arithmetic(origins)

    # --- slices -------------------------------------------------------------------------------------------------------

    def slice(self, node: cst.Subscript, way: Way) -> Take | Unknown | None:
        """`x[i:i + B]` in `for i in range(0, n, B)`, or `x[k * B:(k + 1) * B]` in `for k in range(n // B)`.

        None where the same rows are taken whatever the step, or no range of rows.
        """
        first, read = node.slice[0].slice, self._arithmetic.polynomial
        if not isinstance(first, cst.Slice) or first.upper is None:
            return None
        low = read(first.lower or cst.Integer("0"), way.calls)
        high = read(first.upper, way.calls)
        if isinstance(low, Unknown) or isinstance(high, Unknown):
            unread = low if isinstance(low, Unknown) else high
            return Unknown(node, _BY_OTHER, unread if isinstance(unread, Unknown) else None)
        counters = low.counters | high.counters
        extent = high.plus(low, -1)
        if not counters:
            return self._by_no_counter(node, first)
        call = self._arithmetic.range_of(next(iter(counters)))
        if len(counters) != 1 or call is None or first.step is not None or extent.size is None:
            return Unknown(node, _UNSIZED if len(counters) == 1 and extent.size is None else _NOT_PLAIN)
        if any(a.star or a.keyword for a in call.args):
            return Unknown(call, "is a range whose arguments are given by * or by keyword")
        return self._of_range(node, (low, extent), call, next(iter(counters)), way)

    def _by_no_counter(self, node: cst.Subscript, bounds: cst.Slice) -> Unknown | None:
        """Rows up to a place that an object keeps; None for the same rows whatever the step."""
        kept = [n for b in (bounds.lower, bounds.upper) if b is not None for n in nodes(b)]
        for place in (n for n in kept if isinstance(n, cst.Attribute)):
            stores = self._origins.index.attribute_stores.get(place.attr.value, ())
            moved = [value for _, value, _ in stores if isinstance(value, cst.AugAssign)]
            if moved:
                position = Unknown(place, "is a place that an object keeps", Unknown(moved[0], "moves it on"))
                return Unknown(node, _BY_OTHER, position)
        return None

    def _of_range(
        self,
        node: cst.Subscript,
        read: tuple[Polynomial, Polynomial],
        call: cst.Call,
        counter: Definition,
        way: Way,
    ) -> Take | Unknown:
        """The batch that a counter of a range chooses, by where its rows begin and how many they are."""
        low, extent = read
        first, args = cst.ensure_type(node.slice[0].slice, cst.Slice), [a.value for a in call.args]
        bounds = [b for b in (first.lower, first.upper) if b is not None]
        assert extent.size is not None
        sizes = [leaf for b in bounds for leaf in self._arithmetic.leaves(b, extent.size, way.calls)]
        around = self._loops_of(counter, way)
        if not sizes or not around:
            return Unknown(node, _UNSIZED if around else "is taken outside of any loop")
        once = self._arithmetic.atom(counter)
        take = Take(node, around, extent.size, tuple(sizes), counted=True, array=node.value)
        if len(args) == 3:
            step = self._arithmetic.polynomial(args[2], way.calls)
            rest = low.plus(once, -1)
            apart = Unknown(node, "takes another number of rows than its counter goes on by", Unknown(args[2], _STEP))
            return self._by_starts(take, args, way) if step == extent and not rest.counters else apart
        rest = low.plus(once.times(extent), -1)
        shifted = rest == extent or rest == extent.times(self._arithmetic.number(-1)) or not rest.terms
        return self._by_number(take, args, way) if shifted and args else Unknown(node, _NOT_PLAIN)

    def _by_starts(self, take: Take, args: list[cst.BaseExpression], way: Way) -> Take | Unknown:
        assert take.size is not None
        step = self._arithmetic.leaves(args[2], take.size, way.calls)
        inside = self._divisors(args[1], take, way, (cst.Subtract, cst.Modulo, cst.FloorDivide, cst.Multiply))
        if inside is None or not step:
            return Unknown(args[1 if step else 2], _USED_OTHERWISE if step else _STEP)
        return replace(take, header=(*step, *inside))

    def _by_number(self, take: Take, args: list[cst.BaseExpression], way: Way) -> Take | Unknown:
        stop = args[-1]
        inside = self._divisors(stop, take, way, (cst.FloorDivide, cst.Divide))
        if inside is None:
            return Unknown(stop, _USED_OTHERWISE)
        if not inside and isinstance(stop, cst.Name):
            inside = self._named_number(stop, take, way)
        from_zero = len(args) == 1 or (isinstance(args[0], cst.Integer) and args[0].value == "0")
        if not inside and not from_zero:
            return Unknown(args[0], "is where the counter of these batches starts, which is not 0")
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
        index, value = self._origins.index, assigned(self._origins.index, stop)
        if value is None or not isinstance(take.size, Definition):
            return []
        read = (name for bound in reaching(index, stop) for name in uses(index, bound))
        if not all(within(index, name, take.loops[-1]) for name in read):
            return []
        return self._divisors(value, take, way, (cst.FloorDivide, cst.Divide)) or []

    def _loops_of(self, counter: Definition, way: Way) -> tuple[Loop, ...]:
        if isinstance(counter.statement, cst.For) and counter.kind == "for":
            return (counter.statement, *self.loops(counter.statement, way))
        return (way.consumer, *self.loops(way.consumer, way)) if way.consumer is not None else ()

    def loops(self, node: cst.CSTNode, way: Way) -> tuple[Loop, ...]:
        """The loops around a node, from the innermost outwards, through the calls on the way to it."""
        around: list[Loop] = list(self._origins.index.loops_around(node))
        function = self._origins.index.enclosing_function(node)
        if function is not None and function in way.calls:
            outer = way.out_of(function)
            if function in self._origins.index.generators and way.consumer is not None:
                around += [way.consumer, *self.loops(way.consumer, outer)]
            else:
                around += self.loops(way.calls[function], outer)
        return tuple(dict.fromkeys(around))

    def counts(self, definition: Definition) -> bool:
        """Whether a binding is a loop's counter."""
        return self._arithmetic.range_of(definition) is not None

    # --- draws --------------------------------------------------------------------------------------------------------

    def draw(self, node: cst.CSTNode, way: Way) -> Take | Unknown | None:
        """`np.random.randint(0, n, B)` and the like in a loop, as an index; `np.random.permutation(n)[:B]`."""
        around = self.loops(node, way)
        if not around or not way.indexing:
            return None
        size = self._drawn_size(node)
        if size is None or isinstance(size, Unknown):
            return size
        if not self._only_chooses(node):
            return Unknown(node, "draws indices that are used for something else than to choose rows")
        if isinstance(size, cst.Tuple | cst.List):
            if len(size.elements) != 1:
                return Unknown(node, "draws indices in more than one dimension")
            size = size.elements[0].value
        read = self._arithmetic.polynomial(size, way.calls)
        assert isinstance(node, cst.BaseExpression)
        return Take(node, around, read.size if isinstance(read, Polynomial) else None, (size,))

    def _drawn_size(self, node: cst.CSTNode) -> cst.BaseExpression | Unknown | None:
        """What says how many indices are drawn; None where none are."""
        if isinstance(node, cst.Subscript):
            first = node.slice[0].slice
            mixed = isinstance(node.value, cst.Call) and drawn(self._origins, node.value) == "permutation"
            if not mixed or not isinstance(first, cst.Slice):
                return None
            plain = first.lower is None and first.step is None and first.upper is not None
            return first.upper if plain else Unknown(node, "takes other indices of a permutation than its first ones")
        if not isinstance(node, cst.Call) or (name := drawn(self._origins, node)) not in DRAWS_INDICES:
            return None
        keyword, position = ("k", 1) if name == "sample" else ("size", DRAW_SIZES[name])
        given = argument(node, keyword, position)
        return given.value if given is not None else Unknown(node, "draws one index, and no batch of them")

    @within_itself(True)
    def _only_chooses(self, node: cst.CSTNode) -> bool:
        """Whether all that is done with indices is to choose rows by them: not to cut them into several batches."""
        parent = self._origins.index.parents[node]
        if isinstance(parent, cst.Index):
            return True
        if isinstance(parent, cst.Arg):
            call = cst.ensure_type(self._origins.index.parents[parent], cst.Call)
            if self._origins.called(call) in _SAME_INDICES:
                return self._only_chooses(call)
            return self._origins.called(call) in _CHOOSE or self._origins.function(call.func) is not None
        if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
            target = parent.targets[0].target
            bound = [d for d in self._origins.index.bound[parent] if d.kind == "assign"]
            reads = [name for each in bound for name in uses(self._origins.index, each)]
            return isinstance(target, cst.Name) and all(map(self._only_chooses, reads))
        return False

    def draws(self, call: cst.Call) -> bool:
        """Whether a call draws at random from what it is given, or indices."""
        return drawn(self._origins, call) in DRAWS_INDICES
