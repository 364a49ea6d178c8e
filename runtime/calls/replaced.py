"""Code of the script's own that Keras' own layers come to: functions that it has put in the place of a library's.

A look at such a layer ends where it comes to such code, before that has done anything, and is taken anew: each
operation of the layer is seen then, as those of the script's own layers are. Where the script replaces a function
later, the looks that were taken hold no longer.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import operator
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ..foundation import is_generated, is_of_script, is_users
from .reach import is_of_users

# TensorFlow, Keras, and what they stand on.
_LIBRARIES = frozenset(
    """
    absl astunparse gast google h5py keras ml_dtypes namex numpy opt_einsum optree packaging scipy six tensorflow
    termcolor tf_keras tfdp tree typing_extensions wrapt
    """.split()  # noqa: SIM905 - a list of words
)
_INSTALLED = ("site-packages/", "dist-packages/")
_GENERATED = "namedtuple_"  # as Python calls the module of what it makes for a class of that kind


class Met(BaseException):
    """A look has come to code of the script's own where there was none by what its layer says of itself."""


class _Watched(NamedTuple):
    """Names of a module or class of a library's, and what they held when they were looked at."""

    held: Mapping[str, Any]
    values: dict[str, Any]


class _State:
    """What looks have come to: classes of layers in which there was code of the script's, and that; code of libraries,
    and names in whose place the script may put other. changes: how often it has."""

    def __init__(self) -> None:
        self.classes: weakref.WeakSet[type] = weakref.WeakSet()
        self.functions: dict[int, FunctionType] = {}
        self.met: dict[int, CodeType] = {}  # by what tells them apart, as codes take long to compare
        self.known: dict[int, CodeType] = {}
        self.watched: dict[int, _Watched] = {}
        self.watched_classes: weakref.WeakSet[type] = weakref.WeakSet()
        self.changes = 0


class _Thread(threading.local):
    layers: list[Any] | None = None


_state, _thread = _State(), _Thread()


def is_in(layer: Any) -> bool:
    """Whether a look has come to such code in a layer of this class."""
    return type(layer) in _state.classes


def functions() -> list[FunctionType]:
    """All such code."""
    return list(_state.functions.values())


def changes() -> int:
    """How often the script has replaced what looks have come to."""
    for held, values in list(_state.watched.values()):
        if not all(map(operator.is_, map(held.get, values), values.values())):  # of many names, at each call
            for name in [name for name, value in values.items() if held.get(name) is not value]:
                values[name] = held.get(name)
                _state.changes += not _is_of_library(values[name])
    return _state.changes


@contextlib.contextmanager
def watched(layer: Any, known: Mapping[int, CodeType] | None) -> Iterator[None]:
    """What runs inside is a call of a layer.

    known: all code of the script's own that there is in it, by what tells it apart; None for one of Keras' own, which
    has none.

    Raises:
        Met: it has come to other code of the script's.
    """
    allowed = {} if known is None else {**_state.met, **known}
    met: list[Any] = []
    known_codes = _state.known

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or id(code) in known_codes or id(code) in allowed or _passes(frame):
            return
        # An installed package is asked for its attributes where TensorFlow looks for a function's module.
        # And what Python has made for a data class is none of the script's.
        is_scripts = is_of_script(code.co_filename) and not code.co_filename.startswith("<")
        if known is None or is_scripts:
            met.append(code)
            _remember(frame)
            raise Met

    before, outside, _thread.layers = sys.getprofile(), _thread.layers, [layer]
    _watch_class(type(layer))
    sys.setprofile(profile)
    try:
        yield
    finally:
        _profile_again(before)
        _thread.layers = outside
    if met:  # whatever has become of it
        raise Met


def _profile_again(profile: Any) -> None:
    if profile is None or callable(profile):
        sys.setprofile(profile)
    else:  # cProfile, which goes on where it is told to
        profile.enable()


@contextlib.contextmanager
def inside(layer: Any) -> Iterator[None]:
    """What runs inside is a call of this layer, in that of another."""
    if _thread.layers is None:
        yield
        return
    _thread.layers.append(layer)
    _watch_class(type(layer))
    try:
        yield
    finally:
        _thread.layers.pop()


def _passes(frame: FrameType) -> bool:
    """Whether a function that begins is a library's, or not one that the layer has called."""
    code = frame.f_code
    if is_code_of_library(code, frame.f_globals):
        _state.known[id(code)] = code
        _watch_names(code, frame.f_globals)
        if code.co_varnames[:1] == ("self",):
            _watch_class(type(frame.f_locals.get("self")))
        return True
    back = frame.f_back
    collects = code.co_name == "__del__" or any(getattr(each, "__code__", None) is code for each in gc.callbacks)
    return collects or (back is not None and not is_code_of_library(back.f_code, back.f_globals))


def _remember(frame: FrameType) -> None:
    """Whose code it is, and all functions that are made of it."""
    assert _thread.layers is not None
    innermost, outermost = type(_thread.layers[-1]), type(_thread.layers[0])
    _state.classes.add(outermost if innermost in _state.classes else innermost)
    _state.met[id(frame.f_code)] = frame.f_code
    # Not by those that refer to the code: TensorFlow holds objects that cannot be asked what they refer to.
    functions = [each for each in gc.get_objects() if type(each) is FunctionType and each.__code__ is frame.f_code]
    _state.functions.update((id(each), each) for each in functions)


def is_code_of_library(code: CodeType, names: Mapping[str, Any]) -> bool:
    """Whether code is of TensorFlow, Keras, what they stand on, or Python; `names` are its globals."""
    path = code.co_filename
    if path.startswith("<") and not path.startswith("<frozen"):  # made of a text
        module = str(names.get("__name__"))
        root = module.split(".", maxsplit=1)[0]
        return root in _LIBRARIES or root in sys.stdlib_module_names or module.startswith(_GENERATED)
    if is_generated(path):
        return False
    package = next((path.rpartition(each)[2] for each in _INSTALLED if each in path), "").split("/")[0]
    return package.removesuffix(".py") in _LIBRARIES or not is_users(path)


def _is_of_library(value: Any) -> bool:
    """Whether what a name of a library holds is the library's, or does nothing."""
    if isinstance(value, property):
        return all(map(_is_of_library, (value.fget, value.fset)))
    if isinstance(value, staticmethod | classmethod | MethodType):
        return _is_of_library(value.__func__)
    if isinstance(value, FunctionType):
        return is_code_of_library(value.__code__, value.__globals__)
    return not isinstance(value, functools.partial) and not (callable(value) and is_of_users(value))


def _watch_class(cls: type) -> None:
    if cls in _state.watched_classes:
        return
    _state.watched_classes.add(cls)
    for each in cls.__mro__[:-1]:
        if not is_of_users(each):
            functions = [name for name, value in vars(each).items() if _may_be_replaced(value)]
            _watch(id(each), vars(each), functions)


def _may_be_replaced(value: Any) -> bool:
    return isinstance(value, FunctionType | property | staticmethod | classmethod)


def _watch_names(code: CodeType, names: Mapping[str, Any]) -> None:
    """Those that a function of a library asks for, of its module and of the modules that it knows."""
    waiting, seen = [names], set()
    while waiting:
        held = waiting.pop()
        if id(held) in seen:
            continue
        seen.add(id(held))
        asked = [name for name in code.co_names if name in held]
        _watch(id(held), held, asked)
        waiting += [vars(each) for name in asked if isinstance(each := held[name], ModuleType)]


def _watch(key: int, held: Mapping[str, Any], names: Iterable[str]) -> None:
    values = _state.watched.setdefault(key, _Watched(held, {})).values
    for name in names:
        values.setdefault(name, held.get(name))
