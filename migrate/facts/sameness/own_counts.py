"""Which numbers of a worker's own examples a value is made of: with `--batch global` one process has all of them.

Such a number is the same on all workers, and yet not what it is in one process: it is a share of that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import libcst as cst

from ...catalogue import VARIABLE_COLLECTIONS, Kind
from ..apis import (
    ARRANGES,
    ARRANGING_METHODS,
    AS_SAID,
    ASSIGNS,
    COUNTS,
    MAKES_WEIGHT,
    OF_KIND,
    SAME_COUNT,
    SETS_VARIABLE,
    SHAPE_ARGUMENTS,
    SPANS,
)
from ..program import (
    ITER,
    Addition,
    Definition,
    Evaluator,
    Frames,
    Origins,
    frame_of,
    method,
    number,
    reaching,
    receiver,
    tests_around,
    uses,
)

Counts = frozenset[cst.CSTNode]
NONE: Counts = frozenset()

_SHAPES = frozenset({"tensorflow.shape", "keras.ops.shape", "keras.backend.shape", "keras.backend.int_shape"})
_DP = "tfdp.runtime."
_HELD = (cst.List, cst.Dict, cst.Set, cst.Tuple, cst.BaseString, cst.DictComp, cst.SetComp)


class OwnCounts(Evaluator[Counts]):
    """Follows values to the expressions that count a worker's examples; they are the answers."""

    nothing = NONE
    unknown = NONE

    def __init__(
        self,
        origins: Origins,
        is_batch: Callable[[cst.CSTNode, Frames], bool],
        is_data: Callable[[cst.BaseExpression], bool],
        settled: Collection[cst.CSTNode],
    ) -> None:
        """is_batch: whether a value may have one row for each of a worker's examples. is_data: whether it is a dataset,
        or what goes over one. settled: expressions of which
        nothing is asked: gradients, whose losses are asked about by themselves, and what is averaged."""
        super().__init__(origins)
        self._is_batch, self._is_data, self._left = is_batch, is_data, frozenset(settled)

    def join(self, values: Iterable[Counts]) -> Counts:
        """Every count in one of them."""
        return NONE.union(*values)

    def known(self, node: cst.CSTNode, frames: Frames) -> Counts | None:  # noqa: ARG002 - the evaluator's signature
        """Nothing of what is asked about elsewhere."""
        return NONE if node in self._left else None

    def exempt(self, value: cst.CSTNode) -> bool:
        """What is averaged is whole wherever it is bound."""
        return value in self._left

    # --- counts -------------------------------------------------------------------------------------------------------

    def shaped(self, node: cst.CSTNode) -> cst.BaseExpression | None:
        """`x` where this is its whole shape, written out here."""
        if isinstance(node, cst.Attribute) and node.attr.value == "shape":
            return node.value if self._origins.names.api(node) is None else None
        if not isinstance(node, cst.Call):
            return None
        api = self._origins.called(node)
        if (api in _SHAPES or api == "numpy.shape") and node.args:
            return node.args[0].value
        if api or not isinstance(node.func, cst.Attribute) or node.args:
            return None
        if method(node) == "get_shape":
            return node.func.value
        return self.shaped(node.func.value) if method(node) in {"as_list", "numpy"} else None

    def _counted(self, node: cst.CSTNode, of: cst.CSTNode, frames: Frames) -> Counts:
        return frozenset({node}) if self.has_rows(of, frames) else NONE

    def has_rows(self, node: cst.CSTNode, frames: Frames = ()) -> bool:
        """Whether there are as many of this as a worker has examples."""
        made = self._origins.of(node)
        if isinstance(node, cst.ListComp | cst.GeneratorExp):
            return bool(self._repeats(node.for_in.iter, frames))
        lists = [o.node for o in made if isinstance(o.node, cst.ListComp) and not o.path]
        if lists:
            return any(self._repeats(each.for_in.iter, frames) for each in lists)
        held = [isinstance(o.node, _HELD) and not o.path for o in made]
        return not (held and all(held)) and not self._is_element(node) and self._is_batch(node, frames)

    def _is_element(self, node: cst.CSTNode) -> bool:
        """Whether this is all that a dataset gives at once, of which other code takes the parts."""
        if not isinstance(node, cst.Name) or not any(o.path[-1:] == (ITER,) for o in self._origins.of(node)):
            return False
        read = (use for d in reaching(self._index, node) for use in uses(self._index, d))
        return any(self._takes_part(use) for use in read)

    def _takes_part(self, use: cst.Name) -> bool:
        above = self._index.parents.get(use)
        if isinstance(above, cst.Subscript) and above.value is use:
            index = above.slice[0].slice
            return isinstance(index, cst.Index) and isinstance(index.value, cst.Integer | cst.SimpleString)
        if isinstance(above, cst.Assign):
            return any(isinstance(t.target, cst.Tuple | cst.List) for t in above.targets)
        asked = isinstance(above, cst.Arg) and self._origins.called(self._index.parents[above]) in OF_KIND
        return asked or isinstance(above, cst.StarredElement) or (isinstance(above, cst.Arg) and bool(above.star))

    def _repeats(self, iterable: cst.BaseExpression, frames: Frames = ()) -> Counts:
        """The counts that say how often a loop over this runs."""
        if isinstance(iterable, cst.Call):
            api = self._origins.called(iterable)
            if api in SPANS:
                return self.all((a.value for a in iterable.args), frames)
            if api in {"builtins.enumerate", "builtins.zip", "builtins.reversed", "builtins.list"}:
                return self.join(self._repeats(a.value, frames) for a in iterable.args)
        return self._counted(iterable, iterable, frames)

    def turns(self, loop: cst.For | cst.While) -> Counts:
        """The counts that say how often a loop runs."""
        return self._repeats(loop.iter) if isinstance(loop, cst.For) else self.of(loop.test)

    # --- what operations do -------------------------------------------------------------------------------------------

    def compound(self, node: cst.CSTNode, frames: Frames) -> Counts:
        """What is computed from a count; whether there are examples at all, or as many as of others, is none."""
        if isinstance(node, cst.Subscript):
            return self._subscript(node, frames)
        if isinstance(node, cst.Comparison):
            return self._comparison(node, frames)
        if isinstance(node, cst.BaseComp):
            inner = (node.key, node.value) if isinstance(node, cst.DictComp) else (getattr(node, "elt", node.for_in),)
            return self.all(inner, frames)
        return self.all(node.children, frames)

    def _subscript(self, node: cst.Subscript, frames: Frames) -> Counts:
        indices = [e.slice for e in node.slice]
        made = self._origins.made(node.value)
        of = self.shaped(made) if made is not None else None
        if of is not None:
            return self._counted(node, of, frames) if _has_first(indices) else NONE
        given = (i.value for i in indices if isinstance(i, cst.Index))
        return self.of(node.value, frames).union(*(self.of(each, frames) for each in given))

    def _comparison(self, node: cst.Comparison, frames: Frames) -> Counts:
        sides = [self.of(side, frames) for side in (node.left, *(c.comparator for c in node.comparisons))]
        first = node.comparisons[0]
        there = any(map(self._is_plain, (node.left, first.comparator))) and _asks_for_any(node)
        named = isinstance(first.operator, cst.In | cst.NotIn | cst.Is | cst.IsNot)
        return NONE if there or named or all(sides) else self.join(sides)

    def _is_plain(self, node: cst.CSTNode) -> bool:
        """Whether a value is the number of all examples itself, and nothing that is computed of it."""
        found = self._origins.one(node)
        if found is None or found.path not in {(), (0,)}:
            return False
        made = found.node
        if isinstance(made, cst.Call) and made.args and not found.path and self._origins.called(made) in SAME_COUNT:
            return self._is_plain(made.args[0].value)
        of = self.shaped(made) if found.path else self._counted_by(made)
        return of is not None and not self._is_part(self._origins.made(of))

    def _counted_by(self, made: cst.CSTNode) -> cst.CSTNode | None:
        """What an expression counts."""
        if isinstance(made, cst.Call) and made.args and self._origins.called(made) in COUNTS:
            return made.args[0].value
        if isinstance(made, cst.Subscript):
            return self.shaped(self._origins.made(made.value))
        if isinstance(made, cst.Attribute) and made.attr.value == "size":
            return made.value
        return self.shaped(made)

    def of_part(self, count: cst.CSTNode) -> bool:
        """Whether this counts some of a batch's examples, chosen by their places: `len(batch[10:])`."""
        of = self._counted_by(count)
        made = self._origins.made(of) if of is not None else None
        return isinstance(made, cst.Subscript) and self._is_part(made)

    def _is_part(self, rows: cst.CSTNode) -> bool:
        """Whether these may be some of a batch's examples only: `batch[10:]`."""
        if not isinstance(rows, cst.Subscript):
            return isinstance(rows, cst.BaseComp)
        first = rows.slice[0].slice
        whole = isinstance(first, cst.Slice) and first.lower is None and first.upper is None
        one = isinstance(first, cst.Index) and number(first.value) is not None  # a row, or one of a tuple of batches
        return not (whole or one) and self.has_rows(rows.value)

    def component(self, value: cst.CSTNode, path: tuple[int, ...], frames: Frames) -> Counts:
        """`batch, width = x.shape`."""
        of = self.shaped(value) if path else None
        if of is None:
            return super().component(value, path, frames)
        return self._counted(value, of, frames) if path[0] == 0 else NONE

    def changed(self, statement: cst.AugAssign, earlier: cst.Name, frames: Frames) -> Counts:
        """`name += 1` in a loop over a worker's examples counts them."""
        found = super().changed(statement, earlier, frames)
        return found.union(*(self._turned(loop, frames) for loop in self._index.loops_around(statement)))

    def _turned(self, loop: cst.For | cst.While, frames: Frames) -> Counts:
        return self._repeats(loop.iter, frames) if isinstance(loop, cst.For) else NONE

    def reached(self, place: cst.CSTNode, frames: Frames) -> Counts:
        """What decides, in its function, that a place is reached; and how far a loop over examples comes."""
        found = self.all(tests_around(place, self._origins), frames)
        around = self._index.loops_around(place) if isinstance(self._index.parents.get(place), cst.Return) else ()
        return found.union(*(self._turned(loop, frames) for loop in around))

    def iterated(self, iterable: cst.BaseExpression, path: tuple[int, ...], frames: Frames) -> Counts:  # noqa: ARG002
        """Elements of what counts are put into; numbers up to a count name examples, and data are asked about apart."""
        return NONE if self._origins.called(iterable) in SPANS or self._is_data(iterable) else self.of(iterable, frames)

    def parameter(self, definition: Definition, frames: Frames) -> Counts | None:
        """What calls give a parameter, and others leave to its default."""
        function = definition.scope
        if not isinstance(function, cst.FunctionDef) or frame_of(frames, function) is not None:
            return None
        given = [self._origins.bind(c, function).get(definition.name) for c in self._origins.calls_of(function)]
        return self.all(value for value in given if value is not None) if None in given else None

    def added(self, addition: Addition, frames: Frames) -> Counts:
        """What is put into a container, or where that is decided."""
        return self.all(addition.values, frames) | self.reached(addition.place, frames)

    # --- attributes and calls -----------------------------------------------------------------------------------------

    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> Counts:
        """`x.shape`, `x.size`; else what any object of the file is given under that name."""
        of = self.shaped(node)
        if of is not None or node.attr.value == "size":
            return self._counted(node, of if of is not None else node.value, frames)
        stores = self._index.attribute_stores.get(node.attr.value, ())
        if node.attr.value in VARIABLE_COLLECTIONS or Kind.OPTIMIZER in self._origins.kinds(node.value):
            return NONE
        return self.of(node.value, frames) | self.stores(node, [(v, p) for _, v, p in stores], frames)

    def named_call(self, call: cst.Call, api: str, frames: Frames) -> Counts:
        """A count, or what a function makes of some; not what it gives a shape."""
        if api.startswith(_DP) or api in OF_KIND:
            return NONE
        if call.args and (api in COUNTS or api in _SHAPES or api == "keras.ops.size"):
            return self._counted(call, call.args[0].value, frames)
        if self._origins.kind(call.func) is Kind.VARIABLE:
            return self._variable(call, frames)
        if AS_SAID.match(api) or self._origins.kind(call.func) is Kind.DRAW:
            filled = call.args[1:2] if api.endswith((".full", ".fill")) else ()
            return self.all((a.value for a in filled), frames)
        if api in ARRANGES:
            return self.all((a.value for a in call.args[:1]), frames)
        if api == "builtins.sum" and call.args and isinstance(call.args[0].value, cst.BaseComp):
            return self._counted(call, call.args[0].value, frames) | self._arguments(call, frames)
        return self._arguments(call, frames)

    def object_call(self, call: cst.Call, frames: Frames) -> Counts:
        """A method as its object and its arguments, an object that is called as its arguments."""
        if method(call) in MAKES_WEIGHT:
            return self._variable(call, frames)
        of = self.shaped(call)
        if of is not None:
            return self._counted(call, of, frames)
        made_of = self._origins.constructed(call)
        if made_of is not None:
            return self.state(made_of)
        held = self.of(call.func, frames)
        if method(call) in ARRANGING_METHODS:
            return held
        return held | self._arguments(call, frames)

    def _arguments(self, call: cst.Call, frames: Frames) -> Counts:
        """What a call is given; of a function, what that gives."""
        found = []
        shapes = {id(a) for a in call.args if a.keyword is not None and a.keyword.value in SHAPE_ARGUMENTS}
        for value in (a.value for a in call.args if id(a) not in shapes):
            function = None if isinstance(value, cst.Call) else self._origins.function(value)
            inside = self._index.given_back(function) if function is not None else ()
            found += [value.body] if isinstance(value, cst.Lambda) else [value, *inside]
        return self.all(found, frames)

    def _variable(self, made: cst.Call, frames: Frames) -> Counts:
        """What a variable starts with, and is assigned later."""
        changes = [(receiver(c), c.args) for c in self._index.methods(*ASSIGNS)]
        calls = (c for c in self._index.calls if self._origins.called(c) in SETS_VARIABLE and c.args)
        changes += [(c.args[0].value, c.args[1:]) for c in calls]
        own = [args for held, args in changes if any(o.node is made for o in self._origins.of(held))]
        given = self.all((a.value for args in own for a in args), frames)
        return given | self.all((a.value for a in made.args[:1] if a.keyword is None), frames)


def _asks_for_any(node: cst.Comparison) -> bool:
    """`n > 0`, `n < 1`."""
    first = node.comparisons[0]
    if 0 in {number(node.left), number(first.comparator)}:
        return True
    return number(first.comparator) == 1 and isinstance(first.operator, cst.LessThan | cst.GreaterThanEqual)


def _has_first(indices: list[cst.BaseSlice]) -> bool:
    """Whether indices of a shape choose its first number, or may."""
    first = indices[0]
    if isinstance(first, cst.Slice):
        return first.lower is None or number(first.lower) == 0
    value = first.value if isinstance(first, cst.Index) else None
    if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):
        return False
    return value is None or number(value) in {None, 0}
