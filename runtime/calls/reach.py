"""What code of the script's own can come to: globals that it names, what it closes over, objects, classes, lists."""

from __future__ import annotations

import argparse
import dis
import functools
import random
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ..foundation import is_users

_MOST = 1000  # elements of a container
_UNCHANGING = frozenset({bool, bytes, complex, float, int, str, type(None), np.float32, np.float64, np.int64})
_SCALARS = frozenset({bool, complex, float, int, str, type(None)})
_CONTAINERS = (list, dict, set, np.ndarray)
_BOOKS = ("_abc_impl",)
_MAKING = ("__init__", "__new__", "__init_subclass__", "__set_name__", "__class_getitem__", "__del__")
_MADE_BY = ("__init__", "__new__", "__del__")
NAMESPACES = (SimpleNamespace, argparse.Namespace, threading.local)
GENERATORS = (
    np.random.BitGenerator,
    np.random.Generator,
    np.random.RandomState,
    np.random.SeedSequence,
    random.Random,
)


def reached(*things: Any) -> Iterator[Any]:
    """Functions and objects, and all that they can come to, each once. Of large containers some, of frameworks' objects
    nothing. What makes objects of a class is come to where the class is named, and not by what is made already."""
    waiting, seen = list(things), set()
    while waiting:
        thing = waiting.pop()
        if type(thing) in _SCALARS:  # each time
            yield thing
            continue
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        yield thing
        found = _beside(thing)
        waiting += found
        made = (each for each in found if each is not type(thing) and each is not _around(thing))
        waiting += [each for cls in made for each in _initializers(cls)]


def state(*things: Any) -> tuple[Any, ...]:
    """The numbers, texts and flags in all that functions and objects can come to, in the order in which they do."""
    return tuple(each for each in reached(*things) if type(each) in _SCALARS)


def is_of_users(thing: Any) -> bool:
    """Whether an object is of a class of the script's own, or is such a class or module."""
    if isinstance(thing, ModuleType):
        return _is_users_module(thing.__name__)
    return _is_users_module((thing if isinstance(thing, type) else type(thing)).__module__)


def _is_users_module(name: str) -> bool:
    path = getattr(sys.modules.get(name), "__file__", None)
    return name == "__main__" or (path is not None and is_users(path))


def root(module: str) -> str:
    """The package that a module is of, both by their names."""
    return module.split(".", maxsplit=1)[0]


def _beside(thing: Any) -> list[Any]:
    if isinstance(thing, MethodType):
        return [thing.__func__, thing.__self__]
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values(), *vars(thing).values()]
    if isinstance(thing, property):
        return [each for each in (thing.fget, thing.fset) if each is not None]
    if isinstance(thing, staticmethod | classmethod):
        return [thing.__func__]
    if isinstance(thing, weakref.ref):
        return [each for each in (thing(),) if each is not None]
    if isinstance(thing, dict):
        makes = getattr(thing, "default_factory", None)
        values, keys = (dict.values(thing), dict.keys(thing)) if is_of_users(thing) else (thing.values(), thing.keys())
        held = [*_some_of(list(values)), *_some_of(list(keys))]
        return [*held, *_of_own_kind(thing), *([] if makes is None else [makes])]
    if isinstance(thing, list | tuple | set | frozenset):
        return [*_some_of(_elements(thing)), *_of_own_kind(thing)]
    if isinstance(thing, ModuleType):
        return []
    if is_of_users(thing):  # and not asked for what it has not, by which it may count
        return _of_class(thing) if isinstance(thing, type) else [*attributes(thing).values(), type(thing)]
    if isinstance(thing, NAMESPACES):
        return list(vars(thing).values())
    inner = getattr(thing, "python_function", None) or getattr(thing, "__wrapped__", None)
    wrapped = [] if inner is None else [inner]
    code = code_of(thing)
    if code is not None:
        return [*wrapped, *(_of_function(thing, code) if is_users(code.co_filename) else ())]
    return wrapped or ([] if isinstance(thing, type) else _hung_on(thing))


def _of_class(thing: type) -> list[Any]:
    own = [cls for cls in (*thing.__mro__, type(thing)) if is_of_users(cls)]
    return [value for cls in own for value in public(cls).values()]


def code_of(thing: Any) -> CodeType | None:
    """That of a function, or of what is as good as one; objects of the script's own are not asked."""
    if not isinstance(thing, FunctionType) and is_of_users(thing):
        return None
    code = getattr(thing, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _hung_on(thing: Any) -> list[Any]:
    """What the script may have put onto an object of a framework's, such as a layer: its own things, and containers."""
    held = getattr(thing, "__dict__", {})
    public = [value for name, value in held.items() if not name.startswith("_")] if type(held) is dict else []
    return [each for each in public if isinstance(each, _CONTAINERS) or is_of_users(each) or _is_own_function(each)]


def _is_written(thing: Any) -> bool:
    """Whether it is a function that stands in a file: not what Python makes for a named tuple."""
    code = code_of(thing)
    return code is not None and not code.co_filename.startswith("<")


def _is_own_function(thing: Any) -> bool:
    code = code_of(thing)
    return code is not None and is_users(code.co_filename)


def _elements(container: Any) -> list[Any]:
    """By Python's own classes: the script's may count how often they are gone through."""
    if not is_of_users(container):
        return list(container)
    kind: Any = next(each for each in (list, tuple, set, frozenset) if isinstance(container, each))
    return list(kind.__iter__(container))


def _some_of(elements: list[Any]) -> list[Any]:
    """All elements of a container; of a large one those that code can change, and some of the others."""
    if len(elements) <= _MOST or not set(map(type, elements)) <= _UNCHANGING:
        return elements
    return elements[:_MOST]


def _of_own_kind(container: Any) -> list[Any]:
    """What a container of a class of the script's own holds besides its elements."""
    return [*attributes(container).values(), type(container)] if is_of_users(container) else []


def attributes(thing: Any) -> dict[str, Any]:
    """What an object holds by names, in slots, too."""
    slots = (name for cls in type(thing).__mro__ for name in _slots(cls))
    in_slots = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return {**getattr(thing, "__dict__", {}), **in_slots}


def _slots(cls: type) -> Sequence[str]:
    """Those of a class of the script's own."""
    found = vars(cls).get("__slots__", ()) if is_of_users(cls) else ()
    names = (found,) if isinstance(found, str) else tuple(found)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def public(cls: type) -> dict[str, Any]:
    """What a class of the script's own holds, methods included, and not Python's and `abc.ABCMeta`'s books."""
    held = vars(cls).items()
    is_book = {name for name, each in held if name.startswith("__") and not _is_method(name, each)}
    return {name: each for name, each in held if name not in is_book and name not in _BOOKS}


def _is_method(name: str, value: Any) -> bool:
    """Whether it is a method that Python calls of an object that there is."""
    return isinstance(value, FunctionType | property) and name not in _MAKING


def _around(thing: Any) -> Any:
    """The class of which a function asks for `super()`; None for others."""
    return None if code_of(thing) is None else closed_over(thing).get("__class__")


def _initializers(thing: Any) -> list[Any]:
    """What makes objects of a class of the script's own."""
    if not isinstance(thing, type) or not is_of_users(thing):
        return []
    own = (vars(cls) for cls in thing.__mro__ if is_of_users(cls))
    made_by = [getattr(held[name], "__func__", held[name]) for held in own for name in _MADE_BY if name in held]
    return [each for each in made_by if _is_written(each)]


def _of_function(function: Any, code: CodeType) -> list[Any]:
    names, asked = named(code), globals_of(code)
    held = [function.__globals__[name] for name in asked if name in function.__globals__]
    held += _imported(function, code)
    held += _of_modules(held, None if "getattr" in asked else names)
    if "__subclasses__" in names:
        for each in [each for each in held if isinstance(each, type)]:
            held += type.__subclasses__(each)
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [*held, *closed_over(function).values(), *defaults, *vars(function).values()]


def _imported(function: Any, code: CodeType) -> list[Any]:
    """Modules that a function imports, as far as they have been by now."""
    package = str(function.__globals__.get("__package__") or "")
    paths = [path for name in _arguments(code, "IMPORT_NAME") for path in (name, f"{package}.{name}".strip("."))]
    return [module for path in paths if (module := sys.modules.get(path)) is not None]


def _of_modules(things: Sequence[Any], names: set[str] | None) -> list[Any]:
    """What a function may ask of the script's modules, and of those in them, by these names; by any if None."""
    found: list[Any] = []
    waiting, seen = list(things), set()
    while waiting:
        module = waiting.pop()
        if isinstance(module, ModuleType) and id(module) not in seen and is_of_users(module):
            seen.add(id(module))
            asked = None if names is None else {*names, "__getattr__"}
            held = [value for name, value in vars(module).items() if asked is None or name in asked]
            found += held
            waiting += held
    return found


def globals_of(code: CodeType) -> frozenset[str]:
    """The globals that a function asks for, and functions within."""
    return _arguments(code, "LOAD_GLOBAL", "LOAD_NAME")


@functools.lru_cache(4096)  # at each call, of all functions that can be come to
def _arguments(code: CodeType, *kinds: str) -> frozenset[str]:
    """What instructions of these kinds name."""
    return frozenset(each.argval for each in instructions(code) if each.opname in kinds)


def named(code: CodeType) -> set[str]:
    """All names of globals and attributes in a function's code, and in that of functions within."""
    return {name for each in codes(code) for name in each.co_names}


def instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """What a function does, and functions within, step by step."""
    for each in codes(code):
        yield from dis.get_instructions(each)


def codes(code: CodeType) -> Iterator[CodeType]:
    """That of a function, and of functions within."""
    waiting = [code]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += [inner for inner in each.co_consts if isinstance(inner, CodeType)]


def closed_over(function: Any) -> dict[str, Any]:
    """What the variables hold by now that a function closes over, by their names."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # nothing yet
            continue
    return found
