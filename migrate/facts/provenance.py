"""Where the values on a line come from, for a person: `tfdp facts PATH:LINE`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from .data import Chain
from .program import ITER, Definition, Unknown, computes, outside, quoted, reaching
from .script import Script

_DEEP = 12  # places shown one below the other
_MOST = 60  # lines shown for one value

_Path = tuple[int, ...]


def provenance(script: Script, line: int) -> str:
    """For each value on a line, what it is understood as, and the places that it comes from, one on each line."""
    found: list[str] = []
    for node in _values(script, line):
        found.append(f"{quoted(script.index, node)}{_understood(script, node)}")
        found += _Trace(script).lines(node)
    return "\n".join(found or [f"line {line}: no value that has an origin"]) + "\n"


def _values(script: Script, line: int) -> list[cst.BaseExpression]:
    """The values that are read on a line, each text once: names, attributes and calls, of `a.f(…)` also `a`."""
    index = script.index
    read = {n for names in index.names.values() for n in names}
    bound = {target for stores in index.attribute_stores.values() for target, _, _ in stores}
    found: dict[str, cst.BaseExpression] = {}
    for node in index.order:
        if not isinstance(node, cst.Name | cst.Attribute | cst.Call) or index.line(node) != line:
            continue
        if index.file(node) is not index.program.entry:
            break
        parent = index.parents[node]
        inside = isinstance(parent, cst.Attribute) or (isinstance(parent, cst.Call) and parent.func is node)
        wanted = node in read if isinstance(node, cst.Name) else node not in bound and not inside
        if wanted and _of_the_file(script, node):
            found.setdefault(index.code(node), node)
    return list(found.values())


def _of_the_file(script: Script, node: cst.BaseExpression) -> bool:
    """Whether a value is the script's, and not a module or a function of a library."""
    return script.names.api(node) is None


def _understood(script: Script, node: cst.BaseExpression) -> str:
    """What the value certainly is, where that is known."""
    kinds = {k.value for k in script.origins.kinds(node) if k is not None}
    found = script.datasets.ask(script.datasets.unwrap(node))
    if not isinstance(found, Unknown):
        return f" is a dataset: {' or '.join(_shown(c) for c in found)}"
    return f" is: {' or '.join(sorted(kinds))}" if kinds else ""


def _shown(chain: Chain) -> str:
    return "source" + "".join(f".{link.stage}()" for link in chain.links[1:])


@dataclass(frozen=True)
class _Place:
    """A place on the way: what a sentence says of it, and the values from which it goes on."""

    node: cst.CSTNode
    said: str
    further: tuple[tuple[cst.CSTNode, _Path], ...] = ()


class _Trace:
    """The places that a value comes from, one step after another."""

    def __init__(self, script: Script) -> None:
        self._script, self._origins = script, script.origins
        self._seen: set[tuple[cst.CSTNode, _Path]] = set()

    def lines(self, node: cst.CSTNode) -> list[str]:
        """One line for each place, indented by how far it is."""
        found = list(self._follow(node, (), 1))
        return found if len(found) <= _MOST else [*found[:_MOST], "  …"]

    def _follow(self, node: cst.CSTNode, path: _Path, depth: int) -> Iterator[str]:
        if (node, path) in self._seen or depth > _DEEP:
            return
        self._seen.add((node, path))
        index = self._script.index
        for place in self._places(node, path):
            yield f"{'  ' * depth}{index.place(place.node)}: {quoted(index, place.node)} {place.said}"
            for further, rest in place.further:
                yield from self._follow(further, rest, depth + 1)

    def _places(self, node: cst.CSTNode, path: _Path) -> list[_Place]:
        match node:
            case cst.Name():
                return self._of_name(node, path)
            case cst.Call():
                return self._of_call(node, path)
            case cst.Attribute():
                return self._of_attribute(node, path)
            case cst.Subscript():
                return [_Place(node, "is part of a value", ((node.value, ()),))]
            case cst.Tuple() | cst.List() if path and 0 <= path[0] < len(node.elements):
                return self._places(node.elements[path[0]].value, path[1:])
            case cst.IfExp():
                return [_Place(node, "is one of two values", ((node.body, path), (node.orelse, path)))]
            case cst.BinaryOperation():
                return [_Place(node, "is computed", ((node.left, ()), (node.right, ())))]
        if isinstance(node, cst.AugAssign):
            return [_Place(node, "changes it in place")]
        literal = isinstance(node, cst.BaseNumber | cst.BaseString)
        return [_Place(node, "is written out here" if literal else "makes it")]

    def _of_name(self, node: cst.Name, path: _Path) -> list[_Place]:
        if (api := self._origins.names.api(node)) is not None:
            return [_Place(node, f"is {api}")]
        return [p for d in reaching(self._script.index, node) for p in self._of_definition(d, path)]

    def _of_definition(self, definition: Definition, path: _Path) -> list[_Place]:
        value, function = definition.value, definition.scope
        if definition.kind == "param" and isinstance(function, cst.FunctionDef):
            calls = self._origins.callers(function)
            given = [v for c in calls if (v := self._origins.bind(c, function).get(definition.name)) is not None]
            said = f"is a parameter of {function.name.value}()"
            said += "" if given else ", to which no call in this file gives a value that is followed"
            return [_Place(value or definition.statement, said, tuple((g, path) for g in given))]
        if value is None or definition.kind in {"def", "class", "import"}:
            return [_Place(value or definition.statement, "defines it")]
        if definition.kind in {"for", "comp"}:
            return [_Place(value, "is gone over: this is one element of it", ((value, ()),))]
        whole = (*definition.path, *path)
        part = f" (part {', '.join(map(str, definition.path))})" if definition.path else ""
        return [_Place(definition.statement, f"gives the value{part}", ((value, whole),))]

    def _of_call(self, node: cst.Call, path: _Path) -> list[_Place]:
        function = self._origins.function(node.func)
        if function is not None:
            returned = self._script.index.returned(function)
            said = f"calls {function.name.value}(), which {'yields it' if not returned else 'returns it'}"
            return [_Place(node, said, tuple((r, path) for r in returned))]
        if (owner := self._origins.constructed(node)) is not None:
            return [_Place(node, f"makes an object of class {owner.name.value}")]
        if (unknown := outside(self._origins, node)) is not None:
            return [_Place(u.node, u.reason) for u in unknown.links]
        api = self._origins.names.api(node.func)
        if api is not None:
            given = tuple((a.value, ()) for a in node.args if ITER not in path and computes(api))
            return [_Place(node, f"is {api}(…)", given)]
        if isinstance(node.func, cst.Attribute):
            return [_Place(node, "is a method of a value", ((node.func.value, ()),))]
        return [_Place(node, "calls a value", ((node.func, ()),))]

    def _of_attribute(self, node: cst.Attribute, path: _Path) -> list[_Place]:
        if (api := self._origins.names.api(node)) is not None:
            return [_Place(node, f"is {api}")]
        stored = self._origins.stored(node)
        owner = self._origins.class_of(node.value)
        if (method := self._origins.method(owner, node.attr.value) if owner is not None else None) is not None:
            given = tuple((v, path) for v in self._script.index.given_back(method))
            return [_Place(node, f"is {method.name.value}() of this file's class", given)]
        if stored:
            return [_Place(node, "is set in this file", tuple((v, (*p, *path)) for v, p in stored))]
        return [_Place(node, "is an attribute that no class of this file sets", ((node.value, ()),))]
