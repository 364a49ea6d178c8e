"""Which counts of a worker's own examples may become those of all workers: of which no use needs the own number."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from ...catalogue import Kind
from ...outputs import PRINTS
from ..apis import (
    ARRANGES,
    AS_SAID,
    CALLED,
    CHOOSES,
    COUNTS_UP,
    KERAS_COMPUTES,
    PURE,
    RATES,
    SHAPE_ARGUMENTS,
    UNASKED,
)
from ..keras import methods_below
from ..program import Origins, leading, method, number, params_of, uses, within
from ..sameness import Mark, OwnCounts, Sameness

_MOST = 200  # places to which one count goes
_Places = list[cst.CSTNode] | None  # where a value goes on to; None where that may need the own number
_TEXTS = frozenset({"builtins.str", "builtins.repr", "builtins.format"}) | PRINTS


class WholeCounts:
    """Follows a count forwards, as far as it is a number."""

    def __init__(
        self,
        origins: Origins,
        sameness: Sameness,
        counts: OwnCounts,
        *,
        read: Collection[cst.CSTNode],
        ends: Collection[cst.CSTNode],
    ) -> None:
        """read: all that trained losses are computed from. ends: calls that take a number of all examples."""
        self._origins, self._index = origins, origins.index
        self._sameness, self._counts, self._read, self._ends = sameness, counts, read, ends
        self._computing = list(methods_below(origins, CALLED, KERAS_COMPUTES))

    def of(self, count: cst.CSTNode) -> cst.BaseExpression | None:
        """The expression that gives the number, where it may be that of all workers."""
        found = self._number(count) if not self._counts.of_part(count) else None
        return found if found is not None and self._once(found) and self._is_number(found) else None

    def _number(self, count: cst.CSTNode) -> cst.BaseExpression | None:
        """`x.shape[0]` of a shape, which is no number itself."""
        above = self._index.parents.get(count)
        if self._counts.shaped(count) is None:
            return count if isinstance(count, cst.BaseExpression) else None
        index = above.slice[0].slice if isinstance(above, cst.Subscript) and len(above.slice) == 1 else None
        first = isinstance(index, cst.Index) and number(index.value) == 0
        return above if isinstance(above, cst.Subscript) and above.value is count and first else None

    def _once(self, count: cst.CSTNode) -> bool:
        """Whether the count is one of training alone, and of one place in it."""
        if any(within(self._index, count, function) for function in self._computing):
            return False
        around = map(self._index.enclosing_function, leading(self._origins, [count]))
        return all(len(self._origins.calls_of(function)) < 2 for function in around if function is not None)

    def _is_number(self, count: cst.CSTNode) -> bool:
        """Whether every use of a count is one of a number, outside losses."""
        seen: dict[cst.CSTNode, None] = {}
        todo = [count]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen[node] = None
            onward = None if node in self._read or len(seen) > _MOST else self._onward(node)
            if onward is None:
                return False
            todo += onward
        return True

    def _onward(self, node: cst.CSTNode) -> _Places:
        parent = self._index.parents.get(node)
        match parent:
            case cst.Expr() | cst.FormattedStringExpression():
                return []
            case cst.If() | cst.While():
                return [] if node is parent.test else None
            case cst.IfExp():
                return [] if node is parent.test else [parent]
            case cst.UnaryOperation() | cst.BooleanOperation() | cst.Comparison() | cst.ComparisonTarget():
                return [parent] if not isinstance(parent, cst.Comparison) or self._alone(parent) else None
            case cst.BinaryOperation():
                other = parent.right if node is parent.left else parent.left
                return None if self._is_own(other) else [parent]
            case cst.ListComp() | cst.GeneratorExp():
                return [parent] if node is parent.elt else None
            case cst.Element() | cst.Tuple() | cst.List():
                return [parent]
            case cst.Arg():
                return self._argument(node, parent)
            case cst.Assign() | cst.AnnAssign() | cst.AugAssign() | cst.NamedExpr():
                return self._bound(parent)
            case cst.Return():
                function = self._index.enclosing_function(parent)
                calls = self._origins.calls_of(function) if function is not None else []
                return [*calls] or None
        return None

    def _alone(self, comparison: cst.Comparison) -> bool:
        """Whether one side alone of a comparison counts examples."""
        sides = [comparison.left, *(c.comparator for c in comparison.comparisons)]
        return sum(bool(self._counts.of(side)) for side in sides) == 1 and not any(map(self._is_own, sides))

    def _is_own(self, node: cst.CSTNode) -> bool:
        """Whether a value may be made from a worker's own examples, of which its own number is the right one."""
        return not self._sameness.of(node).isdisjoint({Mark.LOCAL, Mark.UNKNOWN})

    def _bound(self, statement: cst.Assign | cst.AnnAssign | cst.AugAssign | cst.NamedExpr) -> _Places:
        """What reads the names and attributes that get the value."""
        given = [t.target for t in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
        targets: list[cst.CSTNode] = []
        for target in given:
            several = isinstance(target, cst.Tuple | cst.List)
            targets += [e.value for e in target.elements] if isinstance(target, cst.Tuple | cst.List) else [target]
            if several and not isinstance(statement.value, cst.Call):
                return None
        if not all(isinstance(t, cst.Name | cst.Attribute) for t in targets):
            return None
        found: list[cst.CSTNode] = [statement] if isinstance(statement, cst.NamedExpr) else []
        found += [u for d in self._index.bound[statement] for u in uses(self._index, d)]
        stored = {t.attr.value for t in targets if isinstance(t, cst.Attribute)} - RATES
        read = (a for name in sorted(stored) for a in self._index.attributes[name])
        return [*found, *(a for a in read if not self._index.is_target(a))]

    def _argument(self, node: cst.CSTNode, arg: cst.Arg) -> _Places:
        call = self._index.parents[arg]
        if not isinstance(call, cst.Call) or arg.star:
            return None
        if call in self._ends:
            return []
        function = self._origins.function(call.func)
        if function is not None:
            return self._given(node, call, function)
        api = self._origins.called(call)
        if api in _TEXTS or (not api and method(call) == "format"):
            return []
        shaped = arg.keyword is not None and arg.keyword.value in SHAPE_ARGUMENTS
        made = AS_SAID.match(api) or api in ARRANGES | COUNTS_UP | CHOOSES | UNASKED
        drawn = self._origins.kind(call.func) in {Kind.DRAW, Kind.LITERAL, Kind.VARIABLE, Kind.MODEL}
        beside = any(self._is_own(a.value) for a in call.args if a is not arg)
        return [call] if PURE.match(api) and not (shaped or made or drawn or beside) else None

    def _given(self, node: cst.CSTNode, call: cst.Call, function: cst.FunctionDef) -> _Places:
        names = [name for name, value in self._origins.bind(call, function).items() if value is node]
        params = (*params_of(function), *function.params.kwonly_params)
        definitions = [d for p in params if p.name.value in names for d in self._index.bound[p]]
        return [u for d in definitions for u in uses(self._index, d)] if definitions else None
