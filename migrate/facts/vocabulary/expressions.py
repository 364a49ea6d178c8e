"""The value of an expression, where all its words are in the vocabulary."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import reduce
from typing import NoReturn

import libcst as cst

from ..program import SourceFile, fold
from .kinds import (
    DATA,
    DATASETS,
    SHOWN,
    STILL,
    Bindings,
    Box,
    Function,
    Kind,
    Named,
    Source,
    Value,
    computed,
    holds_list,
    is_nested,
    is_of_batch,
    join,
    kind,
    leaves,
)
from .words import ATTRIBUTES, CONSTANTS, LOSSES, RUNTIME, known

_ONLY_COMPUTES = re.compile(r"builtins\.(abs|bool|float|int|len|max|min|round|sum)$")


class OutsideError(Exception):
    """Something that is not in the vocabulary: where, and what."""

    def __init__(self, node: cst.CSTNode, what: str) -> None:
        super().__init__(what)
        self.node, self.what = node, what


class Expressions(ABC):
    """Reads expressions. `names` are those that hold where an expression stands."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self.in_graph = False
        self.guarded = False  # for rank 0 alone
        self.single = False  # whether some data may be one array, which has no parts but its rows
        self.of_data = False  # inside a loop over a dataset: a turn is a step
        self.writes: list[cst.Call] = []  # calls that write files, and nothing says which worker does
        self.trained: set[Source] = set()  # what is trained on
        self.measured: dict[Source, cst.CSTNode] = {}  # what models are measured on, and where
        self.looped: frozenset[Source] = frozenset()  # of the loop in which a step stands
        self.sites: list[cst.CSTNode] = []  # calls of functions of the file, one inside of the other
        self.measures: list[cst.Call] = []  # calls that update a metric, or give its result
        self.gone_through: cst.CSTNode | None = None  # what is asked for its elements where it stands
        self.done: cst.CSTNode | None = None  # the statement that is only done: what it gives is not asked
        self._may_not_be = False  # inside what Python leaves out where the first part says so

    @abstractmethod
    def call(self, node: cst.Call, names: Bindings) -> Value:
        """What a call gives."""

    @abstractmethod
    def element(self, node: cst.CSTNode, value: Value) -> Value:
        """What a loop over a value gives at each turn."""

    @abstractmethod
    def made(self, node: cst.FunctionDef | cst.Lambda, names: Bindings, compiled: bool = False) -> Function:
        """A function, with what its defaults are now."""

    @abstractmethod
    def bind(self, target: cst.BaseExpression, value: Value, names: Bindings) -> None:
        """Gives the names of a target a value."""

    def outside(self, node: cst.CSTNode, what: str = "") -> NoReturn:
        """Raises OutsideError with the text of a node, or with other words."""
        bare = node.with_changes(lpar=[], rpar=[]) if isinstance(node, cst.BaseExpression) else node
        text = " ".join(self._file.code(bare).split())
        raise OutsideError(node, what or f"`{text if len(text) <= 60 else text[:57] + '...'}`")

    def value(self, node: cst.BaseExpression, names: Bindings) -> Value:
        """What an expression is. Raises OutsideError."""
        read = _READERS.get(type(node))
        if read is None:
            self.outside(node)
        found: Value = getattr(self, read)(node, names)
        return found

    def many(self, node: cst.BaseExpression, names: Bindings) -> Value:
        """What an expression is whose elements are asked for at once."""
        before, self.gone_through = self.gone_through, node
        found = self.value(node, names)
        self.gone_through = before
        return found

    # --- parts --------------------------------------------------------------------------------------------------------

    def _text(self, node: cst.FormattedString, names: Bindings) -> Value:
        parts = [p for p in node.parts if isinstance(p, cst.FormattedStringExpression)]
        found = self._known(node, [p.expression for p in parts], names)
        for part in parts:
            for inner in part.format_spec or ():
                if isinstance(inner, cst.FormattedStringExpression):
                    self.whole(inner.expression, names)
        return found

    def _texts(self, node: cst.ConcatenatedString, names: Bindings) -> Value:
        """Texts one behind the other."""
        return self._known(node, [node.left, node.right], names)

    def _tuple(self, node: cst.Tuple, names: Bindings) -> Value:
        return tuple(self._element(e, names) for e in node.elements)

    def _list(self, node: cst.List, names: Bindings) -> Value:
        box = Box()
        for element in node.elements:
            self.filled(box, self._element(element, names), element)
        return box

    def filled(self, box: Box, value: Value, at: cst.CSTNode) -> Box:
        """A list with one more element, which is no worker's own: it would have other names, and be read anywhere."""
        if not {Kind.OWN, Kind.LOSS}.isdisjoint(leaf for leaf in leaves(value) if isinstance(leaf, Kind)):
            self.outside(at, f"`{self._file.code(at)}`, a worker's own value in a list,")
        box.put(value)
        return box

    def _element(self, element: cst.BaseElement, names: Bindings) -> Value:
        return self.outside(element) if isinstance(element, cst.StarredElement) else self.value(element.value, names)

    def _table(self, node: cst.Dict, names: Bindings) -> Value:
        box = Box()
        for element in node.elements:
            if not isinstance(element, cst.DictElement):
                self.outside(element)
            self.whole(element.key, names)
            self.filled(box, self.value(element.value, names), element.value)
        return box

    def _name(self, node: cst.Name, names: Bindings) -> Value:
        found = names.get(node.value)
        if found is None:
            return self._constant(node, f"builtins.{node.value}")
        if found is Kind.MIXED:
            self.outside(node, f"`{node.value}`, which may be one thing or another")
        return self._constant(node, found.api) if isinstance(found, Named) else found

    def _constant(self, node: cst.CSTNode, api: str) -> Value:
        """The value of a library's name that is not called."""
        if api in {"builtins.True", "builtins.False"}:
            return Kind.FLAG
        if CONSTANTS.match(api):
            return Kind.WHOLE
        if api == "builtins.None":
            return Kind.NOTHING
        place, _, name = api.rpartition(".")
        if place == "keras.losses" and name in LOSSES:
            return Kind.LOSS_FUNCTION
        word = known(api)
        return Kind.ACTIVATION if word is not None and word.activates else self.outside(node)

    def named(self, node: cst.CSTNode, names: Bindings) -> str | None:
        """The full name of a library's function, class or module."""
        if isinstance(node, cst.Attribute):
            base = self.named(node.value, names)
            return fold(f"{base}.{node.attr.value}") if base is not None else None
        if not isinstance(node, cst.Name):
            return None
        found = names.get(node.value)
        if found is None:
            return f"builtins.{node.value}"
        return found.api if isinstance(found, Named) else None

    def _attribute(self, node: cst.Attribute, names: Bindings) -> Value:
        api = self.named(node, names)
        if api is not None:
            return self._constant(node, api)
        value, name = self.value(node.value, names), node.attr.value
        of = kind(value)
        if of is Kind.SETTINGS:
            return Kind.WHOLE
        given = ATTRIBUTES.get((Kind.WHOLE if of is Kind.NUMBER else of, name))
        return given if given is not None else self.outside(node)

    def _subscript(self, node: cst.Subscript, names: Bindings) -> Value:
        value = self.value(node.value, names)
        for element in node.slice:
            part = element.slice
            bounds = (part.lower, part.upper, part.step) if isinstance(part, cst.Slice) else (part.value,)  # type: ignore[attr-defined]
            for bound in bounds:
                if bound is not None:
                    self.still(bound, names)
        if not DATASETS.isdisjoint(map(kind, leaves(value))):
            self.outside(node)  # whether it is trained on is followed by names
        if holds_list(value) and any(isinstance(element.slice, cst.Slice) for element in node.slice):
            return _copied(value)
        if isinstance(value, Box) and value.content is not None:
            return value.content
        if kind(value) is Kind.LAYER and not isinstance(value, tuple):
            return Kind.LAYER
        if isinstance(value, tuple) and holds_list(value):
            return reduce(join, value)
        if isinstance(value, tuple):
            found = set(map(kind, value))
            return next(iter(found)) if len(found) == 1 and found != {Kind.FLAG} else self.outside(node)
        return kind(value) if kind(value) in {Kind.WHOLE, Kind.OWN} else self.outside(node)

    def is_of_root(self, test: cst.BaseExpression, names: Bindings) -> bool:
        """Whether a migrated script asks there whether this is rank 0."""
        left = test.left if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 else None
        asks = isinstance(left, cst.Call) and self.named(left.func, names) == f"{RUNTIME}rank"
        return asks and self._file.code(test).endswith(".rank() == 0")

    def whole(self, node: cst.BaseExpression, names: Bindings) -> Kind:
        """The kind of an expression. Raises OutsideError where it is not alike on all workers."""
        found = kind(self.value(node, names))
        return found if found in DATA else self.outside(node)

    def still(self, node: cst.BaseExpression, names: Bindings) -> None:
        """Raises OutsideError where an expression is not alike on all workers and at all steps."""
        if self.whole(node, names) is Kind.COUNT:
            self.outside(node, f"`{self._file.code(node)}`, which goes by the number of the step,")

    # --- operators ----------------------------------------------------------------------------------------------------

    def _binary(self, node: cst.BinaryOperation, names: Bindings) -> Value:
        return self.combined(node, self.value(node.left, names), node.operator, self.value(node.right, names))

    def combined(self, node: cst.CSTNode, left: Value, operator: cst.CSTNode, right: Value) -> Value:
        """What an operator makes of two values."""
        one, other = kind(left), kind(right)
        if Kind.NOTHING in (one, other):
            self.outside(node)
        if isinstance(left, Box) and isinstance(right, Box):
            if not isinstance(operator, cst.Add | cst.AddAssign) or self.of_data:  # it may grow by step
                self.outside(node)
            return left.unite(right)
        if is_nested(left) or is_nested(right):
            self.outside(node)
        if {one, other} <= DATA:
            return Kind.NUMBER if one is other is Kind.NUMBER else computed({one, other})
        spelled = type(operator).__name__.removesuffix("Assign")
        if {one, other} <= STILL | {Kind.LOSS} and (spelled in {"Add", "Subtract"} or _scales(one, spelled, other)):
            return Kind.LOSS
        if {one, other} <= DATA | {Kind.OWN}:
            return Kind.OWN
        if Kind.NUMBER in (one, other) and spelled in {"Add", "Subtract", "Multiply", "Divide"}:
            of = other if one is Kind.NUMBER else one
            return of if of in {Kind.ELEMENT, Kind.ELEMENTS} else self.outside(node)
        return self.outside(node)

    def _unary(self, node: cst.UnaryOperation, names: Bindings) -> Value:
        found = kind(self.value(node.expression, names))
        return found if found in {Kind.NUMBER, Kind.FLAG, Kind.COUNT, Kind.WHOLE, Kind.OWN} else self.outside(node)

    def _compared(self, node: cst.Comparison, names: Bindings) -> Value:
        first, *others = (each.comparator for each in node.comparisons)
        return self._known(node, [node.left, first], names, others)

    def _both(self, node: cst.BooleanOperation, names: Bindings) -> Value:
        """One of its two parts: of a list that would be another name."""
        return self._known(node, [node.left], names, [node.right], is_part=True)

    def _known(
        self,
        node: cst.CSTNode,
        parts: Iterable[cst.BaseExpression],
        names: Bindings,
        others: Iterable[cst.BaseExpression] = (),
        is_part: bool = False,
    ) -> Value:
        """Something alike on all workers, or a worker's own, as all its parts are the one or some the other. Python may
        leave others out."""
        found = [self.value(part, names) for part in parts]
        before, self._may_not_be = self._may_not_be, True
        found += [self.value(part, names) for part in others]
        self._may_not_be = before
        kinds = set(map(kind, found))
        if not kinds <= SHOWN or (is_part and any(map(holds_list, found))):
            self.outside(node)
        return computed(kinds) if kinds <= DATA else Kind.OWN

    def _either(self, node: cst.IfExp, names: Bindings) -> Value:
        if self.is_of_root(node.test, names) and isinstance(node.orelse, cst.Integer):
            return self.value(node.body, names)  # what is shown
        counts = self.whole(node.test, names) is Kind.COUNT
        before, self._may_not_be = self._may_not_be, self._may_not_be or counts
        found = join(self.value(node.body, names), self.value(node.orelse, names))
        self._may_not_be = before
        if not counts:
            return found
        if kind(found) not in SHOWN or holds_list(found):
            self.outside(node)
        return Kind.COUNT if kind(found) in DATA else Kind.OWN

    def _listed(self, node: cst.ListComp, names: Bindings) -> Value:
        """A list of what is made of each element of another. No generator: it reads names when it is gone through."""
        inner, turn = Bindings(names), node.for_in
        if turn.inner_for_in is not None or turn.asynchronous is not None:
            self.outside(node)
        many = self.many(turn.iter, names)
        element = self.element(turn.iter, many)
        if is_of_batch(element):
            self.outside(node)  # a loop over data is a `for`
        self.bind(turn.target, element, inner)
        before, self._may_not_be = self._may_not_be, self._may_not_be or bool(turn.ifs)
        for condition in turn.ifs:
            self.still(condition.test, inner)
        made = self.value(node.elt, inner)
        if is_of_batch(made):
            self.outside(node)  # the batches of one loop would be trained on in another
        box = self.filled(Box(), made, node)
        self._may_not_be = before
        return box

    def _function(self, node: cst.Lambda, names: Bindings) -> Value:
        return self.made(node, names)

    def _called(self, node: cst.Call, names: Bindings) -> Value:
        if self._may_not_be and not _ONLY_COMPUTES.match(self.named(node.func, names) or ""):
            self.outside(node)  # what is done is asked by an `if`, which the number of the step must not decide
        return self.call(node, names)

    def _number(self, _: cst.CSTNode, __: Bindings) -> Value:
        return Kind.NUMBER

    def _written(self, _: cst.CSTNode, __: Bindings) -> Value:
        return Kind.WHOLE


def _copied(value: Value) -> Box:
    """Another list, or tuple, of the same elements."""
    copy = Box()
    for each in value.contents if isinstance(value, Box) else value if isinstance(value, tuple) else ():
        copy.put(each)
    return copy


def _scales(one: Kind, spelled: str, other: Kind) -> bool:
    """Whether an operator scales a loss by what is alike on all workers."""
    if spelled == "Divide":
        return one is Kind.LOSS and other in STILL
    return spelled == "Multiply" and (one in STILL) != (other in STILL)


_READERS: dict[type[cst.CSTNode], str] = {
    cst.Integer: "_number",
    cst.Float: "_number",
    cst.Ellipsis: "_written",
    cst.SimpleString: "_written",
    cst.ConcatenatedString: "_texts",
    cst.FormattedString: "_text",
    cst.Tuple: "_tuple",
    cst.List: "_list",
    cst.Dict: "_table",
    cst.Name: "_name",
    cst.Attribute: "_attribute",
    cst.Subscript: "_subscript",
    cst.BinaryOperation: "_binary",
    cst.UnaryOperation: "_unary",
    cst.Comparison: "_compared",
    cst.BooleanOperation: "_both",
    cst.IfExp: "_either",
    cst.Lambda: "_function",
    cst.ListComp: "_listed",
    cst.Call: "_called",
}
