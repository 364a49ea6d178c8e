"""Python's own functions, as far as code that only computes may call them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from . import vocabulary
from .attributes import attribute
from .reads import MISSING, in_class, innermost, is_own, is_scripts
from .values import ARRAY, DATA_ALONE, SCALARS, Arguments, Fixed, Known, Made, RefusedError, Scope, Super, Value, joined

_RANGE = 256  # numbers that are gone through one by one
_STREAMS = ("TextIOWrapper", "EncodedFile")
# Of these kinds data is in a graph as where it runs eagerly.
_KINDS = (dict, list, set, str, tuple, tf.Tensor, tf.Variable)
Handler = Callable[[Any, Arguments, ast.AST, Scope], Value]


def _computes(evaluator: Any, arguments: Arguments, *_: Any) -> Value:
    given = joined([*arguments.positional, arguments.rest or ()])
    for each in arguments.named.get("key", ()):
        evaluator.anyhow(each, joined([given, evaluator.elements(given)]))
    return _data(evaluator, given)


def _data(evaluator: Any, value: Value) -> Value:
    for each in value:
        if not evaluator.is_data(each):
            raise RefusedError("computes with what is no data")
    return DATA_ALONE


def _text(_: Any, arguments: Arguments, *__: Any) -> Value:
    if any(not (isinstance(each, Known) and type(each.thing) in SCALARS) for each in arguments.all()):
        raise RefusedError("makes a text of what is no known number or text")
    found = arguments.positional[0] if arguments.positional else frozenset()
    return frozenset(Known(str(each.thing)) for each in found)


def _sorted(evaluator: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
    evaluator.sorts(evaluator.elements(joined([*arguments.positional, arguments.rest or ()])), arguments)
    return _container(evaluator, arguments, node, scope)


def _set(evaluator: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
    found = _container(evaluator, arguments, node, scope)
    if not all(evaluator.may_be_a_key(each) for made in found for each in made.elements):
        raise RefusedError("makes a set of what the script says how to compare")
    return found


def _container(evaluator: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
    named = [value for name, value in arguments.named.items() if name not in ("key", "reverse")]
    held = joined([evaluator.elements(joined([*arguments.positional, arguments.rest or ()])), *named])
    return scope.container(node, held)


def _dictionary(evaluator: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
    given = joined(arguments.positional)
    values = [evaluator.values(each) for each in given]
    pairs = evaluator.elements(given)
    held = [each.items for each in pairs if isinstance(each, Fixed)]
    inside = [value for items in held for value in items]
    rest = [each for each in pairs if not isinstance(each, Fixed)]
    return scope.container(node, joined([*values, *inside, rest, *arguments.named.values(), arguments.more or ()]))


def _zip(evaluator: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
    if arguments.rest is not None:
        return scope.container(node, {Fixed((evaluator.elements(joined([*arguments.positional, arguments.rest])),))})
    rows = [_exact(each) for each in arguments.positional]
    known = [each for each in rows if each is not None]
    if len(known) == len(rows):
        for each in arguments.positional:
            evaluator.elements(each)
        return scope.container(node, [Fixed(tuple(each)) for each in zip(*known, strict=False)])
    return scope.container(node, {Fixed(tuple(evaluator.elements(each) for each in arguments.positional))})


def _exact(value: Value) -> list[Value] | None:
    """The elements of a list that there is, one by one."""
    if len(value) != 1:
        return None
    (one,) = value
    if isinstance(one, Fixed):
        return list(one.items)
    if isinstance(one, Known) and isinstance(one.thing, list | tuple) and vocabulary.is_container(one.thing):
        return [frozenset({Known(each)}) for each in one.thing]
    return None


def _enumerate(evaluator: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
    given = joined(arguments.positional[:1])
    rows = _exact(given)
    if rows is not None and len(arguments.positional) == 1 and not arguments.named:
        evaluator.elements(given)
        return scope.container(node, [Fixed((frozenset({Known(i)}), each)) for i, each in enumerate(rows)])
    return scope.container(node, {Fixed((DATA_ALONE, evaluator.elements(given)))})


def _range(evaluator: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
    ends = [_single_int(each) for each in arguments.positional]
    if all(each is not None for each in ends) and arguments.rest is None:
        found = range(*ends)  # type: ignore[arg-type]
        if len(found) <= _RANGE:
            return scope.container(node, map(Known, found))
    _data(evaluator, arguments.all())
    return scope.container(node, DATA_ALONE)


def _single_int(value: Value) -> int | None:
    things = [each.thing for each in value if isinstance(each, Known)]
    return things[0] if len(value) == 1 and len(things) == 1 and type(things[0]) is int else None


def _map(evaluator: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
    given = tuple(evaluator.elements(each) for each in arguments.positional[1:])
    found = [evaluator.apply(each, Arguments(given), node, scope) for each in arguments.positional[0]]
    return scope.container(node, joined(found))


def _length(evaluator: Any, arguments: Arguments, *_: Any) -> Value:
    (given,) = arguments.positional
    (one,) = given if len(given) == 1 else (None,)
    if isinstance(one, Known) and isinstance(one.thing, list | tuple | dict) and vocabulary.is_container(one.thing):
        return frozenset({Known(len(evaluator.reads.read("elements", one.thing)) // (1 + isinstance(one.thing, dict)))})
    for each in given:
        if isinstance(each, Known) and is_scripts(type(each.thing)):
            raise RefusedError(f"asks for the length of a {type(each.thing).__name__}")
    return DATA_ALONE


def _is_instance(evaluator: Any, arguments: Arguments, *_: Any) -> Value:
    given, kinds = arguments.positional
    types = [each.thing for each in evaluator._deep(kinds) if isinstance(each, Known)]
    hooks = ("__instancecheck__", "__subclasscheck__", "__subclasshook__")
    if not types or any(not isinstance(each, type) or is_scripts(type(each)) for each in types):
        raise RefusedError("asks of what kind something is, by kinds that are not known")
    if any(hook in vars(base) for each in types for base in each.__mro__ if is_scripts(base) for hook in hooks):
        raise RefusedError("asks of what kind something is, by kinds that are not known")
    found = set()
    for each in given:
        if isinstance(each, Known):
            found.add(Known(isinstance(each.thing, tuple(types))))
        elif each is ARRAY or any(kind not in _KINDS for kind in types):
            raise RefusedError("asks of what kind data is")
        else:
            found |= DATA_ALONE
    return joined([found])


def _attribute(evaluator: Any, arguments: Arguments, *_: Any) -> Value:
    holders, names, *default = arguments.positional
    found: list[Value] = []
    for holder in holders:
        for name in names:
            if not isinstance(name, Known) or type(name.thing) is not str or not isinstance(holder, Known):
                raise RefusedError("asks for an attribute whose name is not known")
            if default and not _has(evaluator, holder, name.thing):
                found += default
            else:
                found.append(attribute(evaluator.reads, holder, name.thing, evaluator))
    return joined(found)


def _has_attribute(evaluator: Any, arguments: Arguments, *_: Any) -> Value:
    holders, names = arguments.positional
    found = set()
    for holder in holders:
        for name in names:
            if not isinstance(name, Known) or not isinstance(holder, Known):
                raise RefusedError("asks whether there is an attribute, of data")
            found.add(Known(_has(evaluator, holder, str(name.thing))))
    return joined([found])


def _has(evaluator: Any, holder: Known, name: str) -> bool:
    thing = holder.thing
    own = [cls for cls in type(thing).__mro__ if is_scripts(cls)]
    if any(hook in vars(cls) for cls in own for hook in ("__getattr__", "__getattribute__")):
        raise RefusedError(f"asks a {type(thing).__name__} whether it has {name}")
    found = in_class(type(thing), name, evaluator.reads)
    if is_scripts(type(found)) or (isinstance(found, property) and is_own(innermost(found.fget))):
        raise RefusedError(f"asks a {type(thing).__name__} whether it has {name}")
    if found is not MISSING:
        return True
    return evaluator.reads.read("held", thing, name) is not MISSING


def _print(evaluator: Any, arguments: Arguments, *_: Any) -> Value:
    stream = evaluator.reads.read("attribute", sys, "stdout")
    if "file" in arguments.named or type(stream).__name__ not in _STREAMS or is_scripts(stream):
        raise RefusedError("prints to what is not the console")
    _data(evaluator, arguments.all())
    return frozenset({Known(None)})


def _super(evaluator: Any, arguments: Arguments, _: Any, scope: Scope) -> Value:
    if not arguments.positional:
        found: Value = evaluator.super_of(scope)
        return found
    owners, bound = arguments.positional
    if not all(isinstance(each, Known) for each in (*owners, *bound)):
        raise RefusedError("uses super() of what is not known")
    return frozenset(Super(owner.thing, each) for owner in owners for each in bound)


def _callable(_: Any, arguments: Arguments, *__: Any) -> Value:
    if not all(isinstance(each, Known) for each in arguments.positional[0]):
        raise RefusedError("asks whether data can be called")
    return frozenset(Known(callable(each.thing)) for each in arguments.positional[0])


def _made(*_: Any) -> Value:
    """An error, of whatever is told."""
    return DATA_ALONE


_BY_NAME: dict[Handler, str] = {
    _computes: "abs all any bool complex divmod float int max min pow round slice sum",
    _container: "list tuple reversed",
    _set: "set frozenset",
    _made: " ".join(name for name, each in vocabulary.BUILTINS.items() if vocabulary.is_error(each)),
}
BUILTINS: dict[str, Handler] = {name: handler for handler, names in _BY_NAME.items() for name in names.split()} | {
    "callable": _callable,
    "dict": _dictionary,
    "enumerate": _enumerate,
    "getattr": _attribute,
    "hasattr": _has_attribute,
    "isinstance": _is_instance,
    "len": _length,
    "map": _map,
    "print": _print,
    "range": _range,
    "sorted": _sorted,
    "str": _text,
    "super": _super,
    "zip": _zip,
}
assert BUILTINS.keys() <= vocabulary.BUILTINS.keys()
__all__ = ["BUILTINS", "Made"]
