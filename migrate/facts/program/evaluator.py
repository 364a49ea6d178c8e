"""One way to follow an expression to what it is made of; a domain says what is asked about it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TypeVar

import libcst as cst

from .asking import Answers
from .flow import reaching
from .grown import Addition, additions, attribute_additions
from .index import ITER, Definition
from .known_branches import Frames, frame_of
from .origins import Origins

V = TypeVar("V")
_Key = tuple[cst.CSTNode, tuple[int, ...], Frames]

_CALLS = 8  # calls entered one in another


class Evaluator(Answers[_Key, V]):
    """Follows names, bound arguments, returns, unpacking, attributes and what is put into containers.

    A domain is a subclass. Its answers form a join-semilattice: `nothing` is what adds nothing, and `unknown` what is
    answered where following ends.
    """

    def __init__(self, origins: Origins) -> None:
        super().__init__()
        self._origins, self._index = origins, origins.index
        self._earlier: dict[cst.AugAssign, cst.Name] = {}

    def of(self, node: cst.CSTNode, frames: Frames = ()) -> V:
        """The answer for the value of an expression."""
        known = self.known(node, frames)
        return known if known is not None else self.ask((node, (), frames))

    def answer(self, question: _Key) -> V:
        """The answer for a path in a value."""
        node, path, frames = question
        if max(len(frames), len(path)) > _CALLS:
            return self.unknown
        return self._part(node, path, frames) if path else self._of(node, frames)

    def all(self, parts: Iterable[cst.CSTNode], frames: Frames = ()) -> V:
        """The answers for several expressions, as one."""
        return self.join(self.of(part, frames) for part in parts)

    # --- what a domain says -------------------------------------------------------------------------------------------

    @abstractmethod
    def known(self, node: cst.CSTNode, frames: Frames) -> V | None:
        """What is known of an expression without following it; None where it has to be followed."""

    @abstractmethod
    def compound(self, node: cst.CSTNode, frames: Frames) -> V:
        """An expression that is no name, attribute or call: an operator, a literal, a container."""

    @abstractmethod
    def named_call(self, call: cst.Call, api: str, frames: Frames) -> V:
        """The call of an imported or built-in function."""

    @abstractmethod
    def object_call(self, call: cst.Call, frames: Frames) -> V:
        """The call of anything else that is no function of the file: a method, an object, a class."""

    @abstractmethod
    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> V:
        """An attribute of which no class of the file is known to store anything."""

    def lambda_call(self, call: cst.Call, function: cst.Lambda, frames: Frames) -> V:  # noqa: ARG002 - for domains
        """The call of a `lambda` by a name that it has."""
        return self.of(function.body)

    def iterated(self, iterable: cst.BaseExpression, path: tuple[int, ...], frames: Frames) -> V:  # noqa: ARG002
        """An element of what is iterated over, or `path` in it."""
        return self.of(iterable, frames)

    def parameter(self, definition: Definition, frames: Frames) -> V | None:  # noqa: ARG002 - for domains
        """What a domain knows of a parameter; None where its calls are to be asked."""
        return None

    def added(self, addition: Addition, frames: Frames) -> V:
        """What it does to a container that something is put in."""
        return self.all(addition.values, frames)

    # --- following ----------------------------------------------------------------------------------------------------

    def _of(self, node: cst.CSTNode, frames: Frames) -> V:
        if isinstance(node, cst.Call):
            return self._call(node, frames)
        if isinstance(node, cst.Name):
            return self._name(node, frames)
        if isinstance(node, cst.Attribute):
            return self._attribute(node, frames)
        if isinstance(node, cst.Lambda | cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom):
            return self.nothing
        if isinstance(node, cst.Await | cst.Yield):
            return self.unknown
        if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Tuple | cst.List | cst.Call):
            place = _place(node)
            if place is not None:
                return self.component(node.value, (place,), frames)
        return self.compound(node, frames)

    def _name(self, node: cst.Name, frames: Frames) -> V:
        if self._origins.names.api(node) is not None:
            return self.nothing
        definitions = reaching(self._index, node)
        found = [self.definition(d, frames) for d in definitions]
        later = (self.added(a, a.frames or frames) for a in additions(self._origins, definitions))
        return self.join((*found, *later))

    def definition(self, definition: Definition, frames: Frames = ()) -> V:
        """What one binding gives a name."""
        if definition.kind in {"import", "def", "class"}:
            return self.nothing
        if definition.kind == "param":
            return self._parameter(definition, frames)
        value = definition.value
        if value is None:
            return self.unknown
        if isinstance(value, cst.AugAssign):
            return self.changed(value, self.earlier(definition.name, value), frames)
        if definition.kind in {"for", "comp"}:
            return self.element(value, definition.path[1:], frames)
        if definition.kind == "other":  # `first, *others = …`, `except Error as error`
            return self.of(value, frames) if isinstance(value, cst.BaseExpression) else self.unknown
        if definition.kind == "with" and (entry := self._entry(value)) is not None:
            return self.all(self._index.given_back(entry))
        return self.component(value, definition.path, frames)

    def _entry(self, context: cst.CSTNode) -> cst.FunctionDef | None:
        """What gives the value of `with context as name:`, where the file defines it."""
        owner = self._origins.class_of(context)
        return self._origins.method(owner, "__enter__") if owner is not None else None

    def earlier(self, name: str, statement: cst.AugAssign) -> cst.Name:
        """A name as it is before a statement changes it: one node for each, so that cycles are seen."""
        if statement not in self._earlier:
            self._earlier[statement] = self._index.probe(name, statement)
        return self._earlier[statement]

    def changed(self, statement: cst.AugAssign, earlier: cst.Name, frames: Frames) -> V:
        """What `name += value` makes of what the name was `earlier`."""
        return self.join((self.of(statement.value, frames), self.of(earlier, frames)))

    def component(self, value: cst.CSTNode, path: tuple[int, ...], frames: Frames) -> V:
        """What unpacking gives: `path` in the value."""
        written = isinstance(value, cst.Tuple | cst.List) and all(isinstance(e, cst.Element) for e in value.elements)
        if path and written and isinstance(value, cst.Tuple | cst.List) and 0 <= path[0] < len(value.elements):
            return self.component(value.elements[path[0]].value, path[1:], frames)
        if path and isinstance(value, cst.Call) and self.known(value, frames) is None:
            return self.ask((value, path, frames))
        return self.of(value, frames)

    def _part(self, value: cst.CSTNode, path: tuple[int, ...], frames: Frames) -> V:
        function = self._origins.function(value.func) if isinstance(value, cst.Call) else None
        if function is None or not isinstance(value, cst.Call):
            return self.of(value, frames)
        return self._returned(value, function, path, frames)

    def element(self, iterable: cst.CSTNode, path: tuple[int, ...], frames: Frames) -> V:
        """What iterating gives: `path` in an element."""
        if isinstance(iterable, cst.Call) and iterable.args:
            api = self._origins.names.api(iterable.func)
            if api == "builtins.enumerate" and path:
                return self.nothing if path[0] == 0 else self.element(iterable.args[0].value, path[1:], frames)
            if api == "builtins.zip" and path and 0 <= path[0] < len(iterable.args):
                return self.element(iterable.args[path[0]].value, path[1:], frames)
        assert isinstance(iterable, cst.BaseExpression)
        return self.iterated(iterable, path, frames)

    def _parameter(self, definition: Definition, frames: Frames) -> V:
        known = self.parameter(definition, frames)
        function = definition.scope
        if known is not None:
            return known
        if isinstance(function, cst.Lambda):
            return self._of_calls(self._origins.calls_of_lambda(function), function, definition.name)
        if not isinstance(function, cst.FunctionDef):
            return self.unknown
        if self._origins.is_self(definition):
            return self.nothing  # self: its attributes are asked one by one
        own = frame_of(frames, function)
        if own is not None:
            bound = self._origins.bind(frames[own][1], function).get(definition.name)
            return self.of(bound, frames[:own]) if bound is not None else self.unknown
        return self._of_calls(self._origins.calls_of(function), function, definition.name)

    def _of_calls(self, calls: list[cst.Call], function: cst.FunctionDef | cst.Lambda, name: str) -> V:
        """What all calls of a function give a parameter."""
        given = [self._origins.bind(c, function).get(name) for c in calls]
        if not given or None in given:
            return self.unknown
        return self.all(value for value in given if value is not None)

    def _call(self, node: cst.Call, frames: Frames) -> V:
        api = self._origins.names.api(node.func)
        if api is not None:
            return self.named_call(node, api, frames)
        function = self._origins.function(node.func)
        if function is not None:
            return self._returned(node, function, (), frames)
        held = self._origins.lambda_of(node.func)
        return self.lambda_call(node, held, frames) if held is not None else self.object_call(node, frames)

    def _returned(self, call: cst.Call, function: cst.FunctionDef, path: tuple[int, ...], frames: Frames) -> V:
        """What a call of a function of the file gives: all that it returns, or yields.

        A function that calls itself is asked about all its calls at once.
        """
        recurs = any(entered is function for entered, _ in frames)
        inside = tuple(f for f in frames if f[0] is not function) if recurs else (*frames, (function, call))
        return self.join(self.component(each, path, inside) for each in self._index.given_back(function))

    def _attribute(self, node: cst.Attribute, frames: Frames) -> V:
        if self._origins.names.api(node) is not None:
            return self.nothing
        stored = self._origins.stored(node)
        if stored:
            return self.stores(node, stored, frames)
        properties = self._index.properties.get(node.attr.value)
        if properties is None:
            return self.plain_attribute(node, frames)
        owner = self._origins.class_of(node.value)
        own = self._origins.method(owner, node.attr.value) if owner is not None else None
        if own is not None:
            return self.all(self._index.given_back(own))
        given = (value for function in properties for value in self._index.given_back(function))
        return self.join((self.plain_attribute(node, frames), self.all(given)))

    def stores(self, node: cst.Attribute, stored: list[tuple[cst.CSTNode, tuple[int, ...]]], frames: Frames) -> V:
        """What is stored in an attribute, and put into it later."""
        found = [self._stored(value, path, frames) for value, path in stored]
        later = [self.added(a, a.frames or frames) for a in attribute_additions(self._origins, node)]
        return self.join((*found, *later))

    def _stored(self, value: cst.CSTNode, path: tuple[int, ...], frames: Frames) -> V:
        if isinstance(value, cst.AugAssign):
            return self.of(value.value, frames)
        return self.component(value, path, frames) if ITER not in path else self.nothing


def _place(node: cst.Subscript) -> int | None:
    """The place of `values[2]`, where it is written out."""
    first = node.slice[0].slice if len(node.slice) == 1 else None
    value = first.value if isinstance(first, cst.Index) else None
    return value.evaluated_value if isinstance(value, cst.Integer) else None
