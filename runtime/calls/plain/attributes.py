"""What attributes and elements come to, of objects that there are and of those that code makes."""

from __future__ import annotations

import enum
import types
from typing import Any

import numpy as np

from ..reach import is_of_users
from . import vocabulary
from .reads import MISSING, Reads, in_class, is_framework, is_own, is_scripts, of_class, static
from .values import (
    ARRAY,
    DATA,
    DATA_ALONE,
    SCALARS,
    Fixed,
    Held,
    Known,
    Made,
    Method,
    Named,
    RefusedError,
    Super,
    Value,
    joined,
)

_DUNDERS = ("__call__", "__class__", "__name__")
_MODULES = ("collections", "functools", "itertools", "math", "operator", "typing")  # of Python's own


def attribute(reads: Reads, value: Any, name: str, evaluator: Any) -> Value:
    """`value.name`."""
    if name.startswith("__") and name.endswith("__") and name not in _DUNDERS:
        raise RefusedError(f"asks for {name}")
    if isinstance(value, Super):
        return _of_super(reads, value, name)
    if not isinstance(value, Known):
        return _of_data(value, name)
    thing = value.thing
    if isinstance(thing, types.ModuleType):
        return _of_module(reads, thing, name)
    if (type(thing) in SCALARS or vocabulary.is_container(thing)) and name in vocabulary.METHODS:
        return frozenset({Named(name, value)})
    methods = (*vocabulary.METHODS, *vocabulary.ASSIGNING) if evaluator.traces else vocabulary.METHODS
    if vocabulary.is_tensor(thing) and name in (*methods, *vocabulary.ATTRIBUTES):
        data = _data_of(thing)
        return frozenset({data if name in vocabulary.ATTRIBUTES else Named(name, data)})
    if isinstance(thing, type):
        return _found(*_of_type(reads, thing, name), value, evaluator)
    return _found(*static(thing, name, reads), value, evaluator)


def _found(kind: str, found: Any, value: Known, evaluator: Any) -> Value:
    if kind == "property":
        given: Value = evaluator.apply_to(found, value)
        return given
    if kind == "method":
        return frozenset({Method(found, value)})
    if kind == "class":
        thing = value.thing
        return frozenset({Method(found, Known(thing if isinstance(thing, type) else type(thing)))})
    if kind == "other":
        raise RefusedError(f"uses an attribute that is a {type(found).__name__}")
    return frozenset({Known(found)})


def _of_data(value: Any, name: str) -> Value:
    if isinstance(value, Made) and name in vocabulary.CHANGING:
        return frozenset({Named(name, value)})
    if isinstance(value, Fixed) and name in value.fields:
        return value.items[value.fields.index(name)]
    if name in vocabulary.ATTRIBUTES:
        return frozenset({value}) if value is ARRAY else DATA_ALONE
    if name in vocabulary.METHODS:
        return frozenset({Named(name, value)})
    raise RefusedError(f"asks for {name} of what it computes with")


def _data_of(thing: Any) -> Any:
    return ARRAY if isinstance(thing, np.ndarray) else DATA


def _of_super(reads: Reads, value: Super, name: str) -> Value:
    found = in_class(type(value.bound.thing), name, reads, value.owner)
    if found is MISSING:
        raise RefusedError(f"asks super() for {name}")
    kind, given = of_class(found, value.bound.thing)
    if kind != "method":
        raise RefusedError(f"asks super() for {name}, which is no method")
    return frozenset({Method(given, value.bound)})


def _of_module(reads: Reads, module: types.ModuleType, name: str) -> Value:
    if is_of_users(module) and not is_framework(module.__name__):
        found = reads.read("global", vars(module), name)
        if found is MISSING:
            raise RefusedError(f"asks the module {module.__name__} for {name}")
        return frozenset({Known(found)})
    if module.__name__ == vocabulary.OURS and name == vocabulary.BY_ROWS:
        return frozenset({Known(reads.read("attribute", module, name))})
    if not (is_framework(module.__name__) or module.__name__ in _MODULES):
        raise RefusedError(f"uses the module {module.__name__}")
    found = reads.read("attribute", module, name)
    is_known = isinstance(found, float | int | types.NoneType | str) and name in vocabulary.CONSTANTS
    if found is MISSING or not (is_known or _is_frameworks_part(found)):
        raise RefusedError(f"uses {module.__name__}.{name}")
    return frozenset({Known(found)})


def _is_frameworks_part(thing: Any) -> bool:
    """What stands in a module of a library's; or a function of the script's, which is seen as such."""
    if isinstance(thing, types.ModuleType | type) or is_own(thing) or callable(thing):
        return True
    return vocabulary.is_frameworks(thing)


def _of_type(reads: Reads, cls: type, name: str) -> tuple[str, Any]:
    if is_scripts(type(cls)):
        raise RefusedError(f"asks {cls.__name__} for {name}, whose class is the script's")
    if isinstance(cls, enum.EnumMeta) and name in cls.__members__:
        return "value", cls.__members__[name]
    found = in_class(cls, name, reads)
    if found is MISSING:
        raise RefusedError(f"asks {cls.__name__} for {name}")
    if isinstance(found, staticmethod):
        return "value", found.__func__
    if isinstance(found, classmethod):
        return "class", found.__func__
    if isinstance(found, types.FunctionType) or not hasattr(type(found), "__get__"):
        return "value", found
    raise RefusedError(f"asks {cls.__name__} for {name}")


def _is_named_tuple(thing: Any) -> bool:
    if not isinstance(thing, tuple) or not hasattr(type(thing), "_fields"):
        return False
    return not vocabulary.answers_python(thing)


def elements(reads: Reads, value: Any) -> Value:
    """What going through it gives."""
    if isinstance(value, Made | Held):
        return frozenset(value.elements)
    if isinstance(value, Fixed):
        return joined(value.items)
    if not isinstance(value, Known):
        return frozenset({value}) if value is ARRAY else DATA_ALONE
    thing = value.thing
    if isinstance(thing, dict) and vocabulary.is_container(thing):
        reads.read("elements", thing)
        return frozenset(map(Known, thing.keys()))
    if vocabulary.is_container(thing) or _is_named_tuple(thing):
        return frozenset(map(Known, reads.read("elements", thing)))
    if vocabulary.is_tensor(thing) or isinstance(thing, str):
        return frozenset({_data_of(thing)})
    raise RefusedError(f"goes through a {type(thing).__name__}")


def subscripted(reads: Reads, value: Any, index: Value, evaluator: Any) -> Value:
    """`value[index]`."""
    if not all(evaluator.may_be_a_key(each) for each in index):
        raise RefusedError("takes an element by what the script says how to compare")
    if isinstance(value, Made | Held):
        return joined([value.elements, {value} if _is_slice(index) else ()])
    places = [each.thing for each in index if isinstance(each, Known)]
    exact = len(places) == len(index)
    if isinstance(value, Fixed):
        if exact and all(type(each) is int and -len(value.items) <= each < len(value.items) for each in places):
            return joined(value.items[each] for each in places)
        return joined([*value.items, {value}])
    if not isinstance(value, Known):
        return frozenset({value}) if value is ARRAY else DATA_ALONE
    thing = value.thing
    if vocabulary.is_tensor(thing) or isinstance(thing, str):
        return frozenset({_data_of(thing)})
    if not (vocabulary.is_container(thing) or _is_named_tuple(thing)):
        raise RefusedError(f"takes an element of a {type(thing).__name__}")
    held = reads.read("elements", thing)
    if isinstance(thing, dict):
        if exact and all(type(each) in SCALARS for each in places):
            return frozenset(Known(thing[each]) for each in places if each in thing)
        return frozenset(map(Known, thing.values()))
    if exact and isinstance(thing, list | tuple) and all(type(each) is int for each in places):
        return frozenset(Known(thing[each]) for each in places if -len(thing) <= each < len(thing))
    return joined([map(Known, held), {value} if _is_slice(index) else ()])


def _is_slice(index: Value) -> bool:
    return any(each is DATA for each in index)
