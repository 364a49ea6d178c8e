"""What decides how many there are: of a rank's losses there are as many as of another's, unless values choose them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from .flow import reaching
from .grown import Addition, additions, attribute_additions
from .index import Definition
from .origins import Origins
from .pieces import nodes

_AS_LONG = frozenset(
    {
        *("builtins.list", "builtins.tuple", "builtins.sorted", "builtins.reversed", "builtins.enumerate"),
        *("builtins.zip", "numpy.array", "numpy.asarray", "numpy.concatenate", "numpy.stack", "collections.deque"),
        *("tensorflow.stack", "tensorflow.concat", "tensorflow.constant", "tensorflow.convert_to_tensor"),
    }
)
_CHOOSES = frozenset(  # by the values that they are given
    {
        *("builtins.filter", "builtins.set", "builtins.frozenset", "builtins.str", "builtins.repr"),
        *("numpy.unique", "numpy.nonzero", "numpy.flatnonzero", "numpy.argwhere", "numpy.where", "numpy.compress"),
        *("numpy.extract", "tensorflow.boolean_mask", "tensorflow.where", "tensorflow.unique", "tensorflow.range"),
        *("builtins.range", "numpy.arange", "itertools.takewhile", "itertools.dropwhile", "collections.Counter"),
    }
)
_METHODS = frozenset({"split", "splitlines", "nonzero", "encode", "strip", "compress"})
_OUTSIDE = ("os.", "glob.", "pathlib.")
_DEPTH = 12


@dataclass(frozen=True)
class Decides:
    """A `node` whose value decides, or, with `reached`, a place that counts as often as it is reached."""

    node: cst.CSTNode
    reached: bool = False


class Lengths:
    """Follows a collection to what is in it, without asking what the values are."""

    def __init__(self, origins: Origins, is_data: Callable[[cst.CSTNode], bool]) -> None:
        """is_data: whether an expression is a dataset, of which each rank has equally many batches."""
        self._origins, self._is_data = origins, is_data
        self._seen: dict[cst.CSTNode, int] = {}

    def of(self, node: cst.CSTNode) -> tuple[Decides, ...]:
        """Everything that decides how many elements the value of an expression has."""
        self._seen = {}
        return tuple(dict.fromkeys(self._of(node, 0)))

    def _of(self, node: cst.CSTNode, depth: int) -> Iterator[Decides]:
        if self._seen.get(node, depth + 1) <= depth or self._is_data(node):
            return  # what is made of itself adds nothing
        self._seen[node] = depth
        if depth > _DEPTH:
            yield Decides(node)
            return
        if isinstance(node, cst.Name):
            definitions = reaching(self._origins.index, node)
            for definition in definitions:
                yield from self._definition(definition, depth)
            yield from self._added(node, additions(self._origins, node, definitions), depth)
        elif isinstance(node, cst.Attribute):
            yield from self._attribute(node, depth)
        elif isinstance(node, cst.Call):
            yield from self._call(node, depth)
        elif isinstance(node, cst.Subscript):
            yield from self._subscript(node, depth)
        elif isinstance(node, cst.SetComp | cst.DictComp) or (isinstance(node, cst.BaseComp) and node.for_in.ifs):
            yield Decides(node)
        elif isinstance(node, cst.BaseComp):
            yield from self._of(node.for_in.iter, depth + 1)
        elif isinstance(node, cst.IfExp):
            yield Decides(node.test)
            yield from self._all((node.body, node.orelse), depth)
        elif isinstance(node, cst.BinaryOperation):
            yield from self._all((node.left, node.right), depth)

    def _all(self, parts: Iterable[cst.CSTNode], depth: int) -> Iterator[Decides]:
        for part in parts:
            yield from self._of(part, depth + 1)

    def _definition(self, definition: Definition, depth: int) -> Iterator[Decides]:
        value, origins = definition.value, self._origins
        if definition.kind == "param" and isinstance(definition.scope, cst.FunctionDef):
            function = definition.scope
            bound = [origins.bind(call, function).get(definition.name) for call in origins.calls_of(function)]
            yield from self._all((each for each in bound if each is not None), depth)
        elif definition.kind in {"assign", "other"} and value is not None and not definition.path:
            yield Decides(definition.statement, reached=True)
            yield from self._of(value.value if isinstance(value, cst.AugAssign) else value, depth + 1)

    def _added(self, node: cst.CSTNode, added: Iterable[Addition], depth: int) -> Iterator[Decides]:
        for each in added:
            if each.values is None:
                yield Decides(node)
                continue
            yield Decides(each.place, reached=True)
            call = each.place.func if isinstance(each.place, cst.Call) else None
            if isinstance(call, cst.Attribute) and call.attr.value in {"extend", "update"}:
                yield from self._all(each.values, depth)

    def _attribute(self, node: cst.Attribute, depth: int) -> Iterator[Decides]:
        stored = self._origins.stored(node)
        for value, path in stored:
            if not path:
                yield from self._of(value, depth + 1)
        if stored:
            yield from self._added(node, attribute_additions(self._origins, node.attr.value), depth)
        elif self._origins.names.api(node) is None:
            yield from self._of(node.value, depth + 1)

    def _call(self, node: cst.Call, depth: int) -> Iterator[Decides]:
        api = self._origins.names.api(node.func)
        arguments = [a.value for a in node.args]
        if api in _CHOOSES or (api or "").startswith(_OUTSIDE):
            yield Decides(node)
        elif api is not None:
            yield from self._all(arguments if api in _AS_LONG else (), depth)
        elif (function := self._origins.function(node.func)) is not None:
            yield from self._function(function, depth)
        elif isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS:
            yield Decides(node.func.value)
        elif isinstance(node.func, cst.Attribute):
            yield from self._of(node.func.value, depth + 1)

    def _function(self, function: cst.FunctionDef, depth: int) -> Iterator[Decides]:
        index = self._origins.index
        for returned in index.returns[function]:
            yield Decides(returned, reached=True)
            yield from self._all((returned.value,) if returned.value is not None else (), depth)
        if function in index.generators:
            yields = (n for n in nodes(function.body) if isinstance(n, cst.Yield))
            yield from (Decides(n, reached=True) for n in yields if index.enclosing_function(n) is function)

    def _subscript(self, node: cst.Subscript, depth: int) -> Iterator[Decides]:
        for element in node.slice:
            if isinstance(element.slice, cst.Slice):
                bounds = (element.slice.lower, element.slice.upper, element.slice.step)
                yield from (Decides(bound) for bound in bounds if bound is not None)
            elif isinstance(element.slice, cst.Index) and self._is_mask(element.slice.value):
                yield Decides(element.slice.value)
        yield from self._of(node.value, depth + 1)

    def _is_mask(self, node: cst.CSTNode) -> bool:
        """Whether this chooses rows: a comparison, or indices that a comparison gives."""
        made = [o.node for o in self._origins.of(node)]
        calls = {self._origins.names.api(m.func) for m in (*made, node) if isinstance(m, cst.Call)}
        return any(isinstance(m, cst.Comparison) for m in (*made, node)) or bool(calls & _CHOOSES)
