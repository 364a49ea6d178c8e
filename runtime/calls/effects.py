"""What code of the script's own may change when it runs once more than the script says, as it does in a look: what can
be put back, and what keeps it from being looked at. What is not known may be changed in ways that cannot be seen."""

from __future__ import annotations

import functools
import inspect
import random
import re
import types
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import is_users
from ..keras import PACKAGES
from .names import (
    Contents,
    Numbers,
    Restored,
    of_attributes,
    of_class,
    of_function,
    of_globals,
    of_plain_attributes,
)
from .reach import GENERATORS, NAMESPACES, closed_over, code_of, globals_of, instructions, is_of_users, reached, root

_FRAMEWORKS = ("_thread", "numpy", "tensorflow", "tfdp", *PACKAGES)
# Of Python's own modules those in which nothing can be changed, or whose state a look puts back.
_STATELESS = frozenset(
    """
    _operator abc collections contextlib copy dataclasses enum functools inspect itertools math numbers
    operator re string types typing typing_extensions warnings weakref
    """.split()  # noqa: SIM905 - a list of words
)
_REACHING = frozenset(("__import__", "eval", "exec", "globals", "input", "locals", "next", "open", "vars"))
_PLAIN = (
    bool,
    bytes,
    complex,
    float,
    frozenset,
    inspect.Signature,
    int,
    range,
    re.Pattern,
    slice,
    str,
    tuple,
    types.EllipsisType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.NoneType,
    types.NotImplementedType,
    types.WrapperDescriptorType,
    type(inspect.FrameInfo.frame),  # a field of a named tuple
    weakref.ReferenceType,
)
_DRAWS = "draws numbers in Python, as a look at it would, too"
_DRAWING = ("random", "numpy.random", "numpy.random.mtrand")
_BETWEEN = ("CACHE", "EXTENDED_ARG", "PRECALL", "PUSH_NULL")
_WITH_ATTRIBUTES = (bool, bytes, complex, float, frozenset, int, str, tuple, functools.partial, np.ndarray)
_WRAPPERS = (classmethod, functools.partial, property, staticmethod, types.MethodType)


def of_code(*things: Any) -> tuple[list[Restored], str]:
    """All that functions and objects can come to and a look may change, to be put back; and what keeps them from being
    looked at, or ""."""
    found: list[Restored] = []
    seen: set[int] = set()
    for each in reached(*things):
        known = _known(each, seen)
        if isinstance(known, str):
            return found, known
        found += known
        if isinstance(each, _WITH_ATTRIBUTES) and hasattr(each, "__dict__"):
            found.append(of_attributes(each))
    return found, ""


def _known(thing: Any, seen: set[int]) -> Sequence[Restored] | str:
    """What puts a thing back; or why it cannot be."""
    if isinstance(thing, (*_PLAIN, *_WRAPPERS)) or type(thing) is object:
        return []
    if isinstance(thing, list | dict | set):
        return [Contents(thing), of_attributes(thing)] if is_of_users(thing) else [Contents(thing)]
    if isinstance(thing, np.ndarray):
        return (
            [Numbers(thing)] if thing.dtype != object else "uses an array of objects, which a look at it might change"
        )
    if isinstance(thing, GENERATORS):
        return _DRAWS
    if isinstance(thing, types.ModuleType):
        return _of_module(thing)
    if code_of(thing) is not None:
        return _of_function(thing, seen)
    if isinstance(thing, type):
        return _of_class(thing)
    if isinstance(thing, types.BuiltinFunctionType):
        alone = isinstance(thing.__self__, types.ModuleType | None)
        return [] if alone else f"calls {thing.__name__} of what it holds, which a look at it might change"
    if isinstance(thing, Iterator) and not isinstance(thing, tf.data.Iterator):
        return f"uses an iterator ({type(thing).__name__}), which a look at it would take from"
    if _is_of_framework(type(thing)):
        return [of_plain_attributes(thing)] if hasattr(thing, "__dict__") else []
    if isinstance(thing, NAMESPACES) or (is_of_users(thing) and all(map(_is_of_python, type(thing).__mro__[:-1]))):
        return [of_attributes(thing)]
    return f"uses a {type(thing).__name__}, which a look at it might change"


def _is_foreign(module: str) -> bool:
    return root(module) in _FRAMEWORKS or root(module) in _STATELESS


def _is_of_framework(cls: type) -> bool:
    return root(cls.__module__) in _FRAMEWORKS


def _is_of_python(cls: type) -> bool:
    """Whether a class keeps all that it has in attributes, or nothing, or is a framework's."""
    return (
        _is_of_framework(cls)
        or vars(cls).get("__slots__") == ()
        or any("__dict__" in vars(each) for each in cls.__mro__[:-1])
    )


def _of_module(module: types.ModuleType) -> Sequence[Restored] | str:
    if is_of_users(module):
        return [of_globals(vars(module))]
    if module in (random, np.random):
        return _DRAWS
    return [] if _is_foreign(module.__name__) else f"uses the module {module.__name__}, which may keep a state"


def _of_function(function: Any, seen: set[int]) -> Sequence[Restored] | str:
    if not is_users(function.__code__.co_filename):
        module = str(function.__globals__.get("__name__"))  # not what a wrapper says it is
        if module in _DRAWING:
            return _DRAWS
        return [] if _is_foreign(module) else f"calls {function.__name__} of {module}, which may keep a state"
    if _may_draw(function):
        return _DRAWS
    reaching = sorted(_REACHING & globals_of(function.__code__))
    if reaching:
        return f"calls {reaching[0]}, which a look at it might make a difference to"
    return list(of_function(function, seen))


def _may_draw(function: Any) -> bool:
    """Whether it asks for `random` of what is NumPy, or may be."""
    of: Any = None  # what was loaded last, where it is known
    for each in instructions(function.__code__):
        if each.opname == "IMPORT_NAME" and each.argval in _DRAWING:
            return True
        if each.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if each.argval == "random" and (of is None or of is np):
                return True
            of = getattr(of, each.argval, None) if isinstance(of, types.ModuleType) else None
        elif each.opname not in _BETWEEN:
            held = function.__globals__ if each.opname == "LOAD_GLOBAL" else closed_over(function)
            of = held.get(each.argval) if each.opname in ("LOAD_GLOBAL", "LOAD_DEREF") else None
    return False


def _of_class(cls: type) -> Sequence[Restored] | str:
    if is_of_users(cls):
        return [of_class(cls)]
    return [] if _is_foreign(cls.__module__) else f"uses {cls.__name__} of {cls.__module__}, which may keep a state"
