"""What is put into an object after it was made: under any of its names, by its methods, by what it is given to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ..apis import (
    ASSIGNS,
    CHANGES_NOTHING,
    GIVES_ITS_OWN,
    HOLDS_GIVEN,
    MUTABLE,
    NAMESPACES,
    ONE_NUMBER,
    PUTS_IN,
    TAKES_OUT,
)
from .asking import closure
from .elsewhere import computes
from .flow import reaching
from .index import Definition, Origin
from .known_branches import Frames
from .origins import Origins
from .spelling import method

_MOST = 200  # objects that one expression may stand for; real ones stay below ten
_WRITTEN = (cst.List, cst.Dict, cst.Set, cst.Tuple, cst.ListComp, cst.DictComp, cst.SetComp)
_CODE = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
_HOLDERS = (*_WRITTEN, cst.Call, cst.FunctionDef, cst.Module)
_CHANGES = PUTS_IN | ASSIGNS | TAKES_OUT


@dataclass(frozen=True)
class Addition:
    """`values` that `place`, a call or an assignment, puts in; `frames` are the calls in which they stand."""

    place: cst.CSTNode
    values: tuple[cst.CSTNode, ...]
    frames: Frames = ()


def additions(origins: Origins, definitions: list[Definition]) -> list[Addition]:
    """Everything that is put into what bindings give a name, under this name and others."""
    changes = Changes.of(origins)
    made = [o for d in definitions if d.kind not in {"import", "def", "class"} for o in origins.bound(d)]
    return changes.into([*made, *(Origin(d.scope) for d in definitions if isinstance(d.scope, cst.Module))])


def attribute_additions(origins: Origins, node: cst.Attribute) -> list[Addition]:
    """The same for an attribute, and for the object that has it: `vars(state)["last"] = loss`."""
    changes = Changes.of(origins)
    found = changes.into([*origins.of(node), *origins.of(node.value)])
    return list(dict.fromkeys([*found, *changes.named.get(node.attr.value, ())]))


class Changes:
    """All changes of objects in a program, by the expressions that make them; an object of a class of the file is known
    by the class."""

    def __init__(self, origins: Origins) -> None:
        self._origins, self._index = origins, origins.index
        self._into: dict[cst.CSTNode, list[Addition]] = defaultdict(list)
        self.named: dict[str, list[Addition]] = defaultdict(list)  # attributes of objects that are not known
        changes = [(o, Addition(a.place, a.values, frames)) for t, a in self._all() for o, frames in self._meant(t)]
        for origin, addition in sorted(changes, key=lambda change: bool(change[0].path)):
            self._keep(origin, addition)  # what is changed as an element last: one has to know what was put in

    @staticmethod
    def of(origins: Origins) -> Changes:
        """Those of a program, found once."""
        if not isinstance(origins.changes, Changes):
            origins.changes = Changes(origins)
        return origins.changes

    def into(self, made: Iterable[Origin]) -> list[Addition]:
        """What is put into any of the objects that these make; what they are elements of is asked by itself."""
        keys = dict.fromkeys(key for o in made if not o.path for key in self._known_by(o.node))
        return list(dict.fromkeys(a for key in keys for a in self._into.get(key, ())))

    # --- what changes anything ----------------------------------------------------------------------------------------

    def _all(self) -> Iterator[tuple[cst.BaseExpression, Addition]]:
        for subscript, value in self._index.subscript_stores.items():
            put = value.value if isinstance(value, cst.AugAssign) else value
            yield subscript.value, Addition(subscript, (put, *(e.slice for e in subscript.slice)))
        for bound in list(self._index.bound.values()):
            for definition in bound:
                if isinstance(definition.value, cst.AugAssign):  # `kept += [loss]` changes the list under all its names
                    earlier = self._index.probe(definition.name, definition.statement)
                    if any(map(self._is_mutable, self._origins.of(earlier))):
                        yield earlier, Addition(definition.statement, (definition.value.value,))
        for name in _CHANGES:
            for held in self._index.attributes.get(name, ()):  # `Thread(target=kept.append, args=(loss,))`
                arg = self._index.parents[held]
                call = self._index.parents[arg]
                if isinstance(arg, cst.Arg) and isinstance(call, cst.Call):
                    yield held.value, _put(call, (a.value for a in call.args if a is not arg))
        for call in self._index.calls:
            yield from self._by_call(call)

    def _is_mutable(self, origin: Origin) -> bool:
        """Whether `+=` changes an object, and makes no new one."""
        made = self._origins.called(origin.node)
        return isinstance(origin.node, _WRITTEN) or (MUTABLE.match(made) is not None and not ONE_NUMBER.match(made))

    def _by_call(self, call: cst.Call) -> Iterator[tuple[cst.BaseExpression, Addition]]:
        given = tuple(a.value for a in call.args)
        yield from ((a.value, _put(call, given)) for a in call.args if a.keyword and a.keyword.value == "out")
        effect = isinstance(self._index.parents.get(call), cst.Expr)  # what nobody reads is called for what it does
        api = self._origins.called(call)
        if api in NAMESPACES:
            if effect and (self._index.enclosing_function(call) or self._index.loops_around(call)):
                yield call, _put(call, (call,))
        elif api and method(call) != "shuffle":
            if effect and not CHANGES_NOTHING.match(api):
                yield from ((each, _put(call, given)) for each in given)
        elif self._origins.function(call.func) is None:
            for func in self._called(call.func):
                yield from self._by_object(call, func, given, effect)

    def _called(self, func: cst.BaseExpression) -> list[cst.CSTNode]:
        """`kept.append`, also where it has a name of its own."""
        if isinstance(func, cst.Attribute):
            return [func]
        return [o.node for o in closure(self._origins.of(func), self._inside, _MOST)]

    def _by_object(
        self, call: cst.Call, func: cst.CSTNode, given: tuple[cst.BaseExpression, ...], effect: bool
    ) -> Iterator[tuple[cst.BaseExpression, Addition]]:
        """A method, or an object that is called, changes what it belongs to, or what it is given."""
        held = func.value if isinstance(func, cst.Attribute) else call.func
        if isinstance(func, cst.Attribute) and func.attr.value == "shuffle" and given:
            yield given[0], _put(call, (held,))
        elif isinstance(func, cst.Attribute) and func.attr.value in _CHANGES:
            yield held, _put(call, given)
        elif effect and not isinstance(func, _CODE) and not self._is_followed(held):
            yield from ((each, _put(call, (*given, held))) for each in (held, *given))

    def _is_followed(self, node: cst.BaseExpression) -> bool:
        """Whether an object is none of Python's own: what the methods of others change is asked elsewhere."""
        if self._origins.kinds(node) - {None}:
            return True
        made = [o.node for o in closure(self._origins.of(node), self._inside, _MOST)]
        apis = [api for n in made if (api := self._origins.called(n))]
        others = any(api.startswith(("tensorflow.", "keras.")) or not computes(api) for api in apis)
        return others or any(isinstance(n, cst.ClassDef) or self._origins.constructed(n) for n in made)

    def _inside(self, origin: Origin) -> Iterator[Origin]:
        """The elements of a container, where one of them is meant."""
        if isinstance(origin.node, cst.Subscript):
            yield from (Origin(o.node, (*o.path, 0)) for o in self._origins.of(origin.node.value))
        for each in _elements(origin.node) if origin.path else ():
            yield from self._origins.of(each)

    # --- what is changed ----------------------------------------------------------------------------------------------

    def _meant(self, target: cst.BaseExpression) -> Iterator[tuple[Origin, Frames]]:
        """What a changed expression is; of a parameter, what each call gives it."""
        while isinstance(target, cst.Subscript):  # `table["losses"].append(loss)`
            target = target.value
        calls = list(self._given(target))
        yield from ((o, frames) for value, frames in calls for o in self._origins.of(value))
        if not calls:
            yield from ((o, ()) for o in self._origins.of(target))

    def _given(self, target: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, Frames]]:
        for definition in reaching(self._index, target) if isinstance(target, cst.Name) else ():
            function = definition.scope
            if definition.kind == "param" and isinstance(function, cst.FunctionDef):
                for call in self._origins.calls_of(function):
                    bound = self._origins.bind(call, function).get(definition.name)
                    if bound is not None:
                        yield bound, ((function, call),)

    def _keep(self, origin: Origin, addition: Addition) -> None:
        for each in closure([origin], self._further, _MOST):
            if isinstance(each.node, cst.Attribute):
                self.named[each.node.attr.value].append(addition)
            for key in self._known_by(each.node):
                self._into[key].append(addition)

    def _known_by(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What an object is known by, if anything can be put into it."""
        owner = node if isinstance(node, cst.ClassDef) else self._origins.constructed(node)
        if owner is not None:
            yield from closure([owner], self._origins.own_bases)
        elif isinstance(node, cst.BinaryOperation):  # `[0.0] * 3`
            yield from (node,) if any(isinstance(s, cst.List) for s in (node.left, node.right)) else ()
        elif isinstance(node, _HOLDERS) and ONE_NUMBER.match(self._origins.called(node)) is None:
            yield node

    def _further(self, origin: Origin) -> Iterator[Origin]:
        """What else a change of a value changes: what it is a part of, or, where it is an element, what may be that."""
        node, of = origin.node, self._origins.of
        if isinstance(node, cst.Subscript):
            yield from (Origin(o.node, (*o.path, 0)) for o in of(node.value))
        elif isinstance(node, cst.Attribute) and node.attr.value == "__dict__":
            yield from of(node.value)
        elif isinstance(node, cst.BooleanOperation):
            yield from (*of(node.left), *of(node.right))
        elif isinstance(node, cst.Call):
            yield from self._further_call(node)
        if origin.path:
            inside = [v for key in self._known_by(node) for a in self._into.get(key, ()) for v in a.values]
            for each in (*_elements(node), *inside):
                yield from (Origin(o.node, (*o.path, 0)) for o in of(each))

    def _further_call(self, call: cst.Call) -> Iterator[Origin]:
        api = self._origins.called(call)
        if api in NAMESPACES or (api == "builtins.vars" and not call.args):
            yield Origin(self._index.root(call))
        elif api == "builtins.vars":
            yield from self._origins.of(call.args[0].value)
        elif HOLDS_GIVEN.match(api):
            yield from (Origin(o.node, (*o.path, 0)) for a in call.args for o in self._origins.of(a.value))
        elif not api and isinstance(call.func, cst.Attribute) and call.func.attr.value in GIVES_ITS_OWN:
            yield from (Origin(o.node, (*o.path, 0)) for o in self._origins.of(call.func.value))


def _put(call: cst.Call, values: Iterable[cst.CSTNode]) -> Addition:
    return Addition(call, tuple(values))


def _elements(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """What is written as the elements of a container."""
    if isinstance(node, cst.List | cst.Tuple | cst.Set | cst.Dict):
        yield from (e.value for e in node.elements)
    elif isinstance(node, cst.ListComp | cst.SetComp):
        yield node.elt
    elif isinstance(node, cst.DictComp):
        yield node.value
