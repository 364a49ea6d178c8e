"""What a script remembers in Python, and in which places: in the names of its modules and running functions, and in
objects of its own classes.

Numbers, texts, arrays, small tensors, lists and the like are kept, and can be put back. Of the rest is known whether
it is the same, or only that something is there.
"""

from __future__ import annotations

import collections
import ctypes
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import io
import pathlib
import pickle
import random
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ..foundation import is_of_script
from .rounds import stored_attributes
from .state import digest, pickled

Place = tuple[Any, ...]  # the module, function or class, and the names from there
_NUMBERS = (bool, int, float, complex, np.generic, type(None))
_PLAIN = (
    *_NUMBERS,
    *(str, bytes, range, slice, enum.Enum, pathlib.PurePath, tf.DType, np.dtype, tf.TensorShape),
    *(datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, fractions.Fraction),
)
_IN_PLACE = (list, dict, set, collections.deque, bytearray)
_HOLD = (*_IN_PLACE, tuple, frozenset)
_DRAW = (random.Random, np.random.RandomState, np.random.Generator)
_MOST_BYTES = 2**20  # of an array that is kept, and not only compared
_DEPTH = 40
_BUILT = frozenset(("built",))  # of layers and optimizers: whether their variables are made, which is as it is
_SOMETHING = "something"  # of which nothing else is known
_LIBRARIES = frozenset(
    (  # whose objects hold variables, which are kept by themselves, or nothing that goes on
        *("tensorflow", "keras", "tf_keras", "numpy", "tfdp"),
        *sys.stdlib_module_names,
    )
)


class Thing(NamedTuple):
    """What is in a place. kept: it can be put back; None: it can only be compared."""

    digest: str
    kept: bytes | None


class Memory:
    """All that can be reached from some frames and from the script's modules now."""

    def __init__(
        self, stack: Iterable[FrameType], given: Mapping[FrameType, set[str]], *, with_values: bool = True
    ) -> None:
        """given: the names of frames that are compared only. with_values: False for generators and iterators alone."""
        self._with_values = with_values
        self.things: dict[Place, Thing] = {}
        self.iterators: dict[int, tuple[Place, Any]] = {}  # by identity
        self.unknown: list[str] = []  # what is another library's, and could not be looked into
        self._puts: dict[Place, Callable[[Any], None]] = {}
        self._generators: dict[tuple[str, Any], list[Any]] = {}  # by whose they are, and under which name
        self._owners: dict[Place, str] = {}
        self._makes: dict[Place, Callable[[Any, Any], None]] = {}  # by the place around
        self._seen: dict[int, Any] = {}  # kept alive, as what is looked at may be made on asking
        self._locals: list[tuple[FrameType, dict[str, Any]]] = []
        modules = {name: each for name, each in sys.modules.items() if _is_own_module(each)}
        self._stored = frozenset().union(*(stored_attributes(str(each.__file__)) for each in modules.values())) - _BUILT
        fixed: dict[int, set[str]] = {}  # of the names of modules
        for frame, names in given.items():
            fixed.setdefault(id(frame.f_globals), set()).update(names - _local_names(frame))
        for name, module in sorted(modules.items()):
            self._names((name,), vars(module), fixed.get(id(vars(module)), set()))
        for number, frame in enumerate(stack):
            if frame.f_locals is not frame.f_globals and frame.f_code.co_name != "<module>":
                held = frame.f_locals
                self._locals.append((frame, held))
                self._names((f"{number} {frame.f_code.co_name}()",), held, given.get(frame, set()))

    def put_back(self, kept: Mapping[Place, Thing], which: Iterable[Place]) -> None:
        """Give these places what was kept of them."""
        for place in which:
            value = pickle.loads(kept[place].kept or b"")
            if place in self._puts:
                self._puts[place](value)
            else:
                self._makes[place[:-1]](place[-1], value)
        for frame, _ in self._locals:
            _write_back(frame)

    def draws(self) -> dict[tuple[str, Any], Any]:
        """Where the script's own generators of random numbers are: by whose they are, and under which name."""
        return {key: _state_of(found[0]) for key, found in self._generators.items() if len(found) == 1}

    def draw_on(self, states: Mapping[tuple[str, Any], Any]) -> None:
        """Let the generators that are there already be where they were."""
        for key, found in self._generators.items():
            if key in states and len(found) == 1:
                _draw_from(found[0], states[key])

    def differences(self, before: Mapping[Place, Thing]) -> tuple[list[Place], list[Place]]:
        """The places with something else in them than before: those that can be put back, and those that cannot.

        A name that is not there any more is not compared if it cannot: who reads it is told by Python.
        """
        put: list[Place] = []
        others: list[Place] = []
        for place, thing in before.items():
            found = self.things.get(place)
            if found is not None:
                if found.digest != thing.digest:
                    (put if thing.kept is not None and place in self._puts else others).append(place)
            elif thing.kept is not None:
                (put if place[:-1] in self._makes else others).append(place)
        return put, others

    def _names(self, around: Place, held: Any, fixed: set[str]) -> None:
        """What names of a module, a function, an object or a class stand for."""
        self._makes[around] = held.__setitem__
        self._owners[around] = words(around[-1:])
        for name in sorted(map(str, held)):  # what several names stand for is looked into at the first of them
            value = held.get(name)
            if name.startswith("__"):
                continue
            put = None if name in fixed else functools.partial(held.__setitem__, name)
            self._look((*around, name), value, put)

    def _look(self, place: Place, value: Any, put: Callable[[Any], None] | None) -> None:
        if isinstance(value, _DRAW):
            self._note(place, _state_of(value), functools.partial(_draw_from, value))
            alike = self._generators.setdefault((self._owners.get(place[:-1], ""), place[-1]), [])
            if all(each is not value for each in alike):
                alike.append(value)
        elif is_plain(value):
            if put is not None and isinstance(value, _IN_PLACE):
                put = functools.partial(_refill, value)
            self._note(place, value, put)
        elif len(place) > _DEPTH or id(value) in self._seen:
            return
        else:
            self._seen[id(value)] = value
            self._into(place, value)

    def _note(self, place: Place, value: Any, put: Callable[[Any], None] | None) -> None:
        if not self._with_values:
            return
        if isinstance(value, np.ndarray) and value.nbytes > _MOST_BYTES:
            self.things[place] = Thing(digest(value), None)
            return
        try:
            data = pickled(value)
        except Exception:  # of classes that cannot be found by their names
            self.things[place] = Thing(_SOMETHING, None)
            self.unknown.append(words(place))
            return
        is_kept = put is not None and len(data) <= _MOST_BYTES
        self.things[place] = Thing(hashlib.blake2b(data, digest_size=8).hexdigest(), data if is_kept else None)
        if put is not None:
            self._puts[place] = put

    def _into(self, place: Place, value: Any) -> None:
        self.things[place] = Thing(_SOMETHING, None)
        if isinstance(value, (list, tuple, collections.deque)):
            self._note((*place, "length"), len(value), None)
            for number, each in enumerate(value):
                self._look((*place, number), each, None)
        elif isinstance(value, dict):
            if not all(map(is_plain, value)):
                self.unknown.append(words(place))
                return
            self._note((*place, "keys"), list(value), None)
            for key, each in value.items():
                self._look((*place, key), each, functools.partial(value.__setitem__, key))
        else:
            self._object(place, value)

    def _object(self, place: Place, value: Any) -> None:
        cls = type(value)
        if isinstance(value, (types.FunctionType, types.MethodType)):
            self._function(place, value)
        elif isinstance(value, tf.types.experimental.GenericFunction):
            self._function(place, getattr(value, "python_function", None))
        elif isinstance(value, type):
            if _is_own(value):
                self._attributes(place, value, vars(value), value)
        elif hasattr(cls, "__next__") and not isinstance(value, io.IOBase) and not _is_own(cls):
            self.iterators[id(value)] = place, value
        elif _is_own(cls) or isinstance(value, (types.SimpleNamespace, *_namespaces())) or _is_framework(cls):
            self._attributes(place, value, getattr(value, "__dict__", {}), cls)
        elif cls.__module__.split(".")[0] not in _LIBRARIES or isinstance(value, np.ndarray):
            try:
                self._note(place, pickle.dumps(value), None)
            except Exception:
                self.unknown.append(f"{words(place)} ({cls.__name__})")

    def _attributes(self, place: Place, value: Any, held: Mapping[str, Any], cls: type) -> None:
        """Of an object, or of a class. Where a framework's class is behind it, those to which the script gives values;
        of callbacks, which remember in Python how the training went, all that are plain, too."""
        is_callback = any(base.__name__ == "Callback" and _is_framework(base) for base in cls.__mro__)
        is_framework = any(map(_is_framework, cls.__mro__))
        slots = {name for base in cls.__mro__ for name in _texts(vars(base).get("__slots__", ()))}
        found = {**dict(held), **{name: getattr(value, name) for name in slots if hasattr(value, name)}}
        set_ = functools.partial(type.__setattr__ if isinstance(value, type) else object.__setattr__, value)
        self._makes[place] = set_
        self._owners[place] = cls.__qualname__
        for name, each in found.items():
            is_framework_s = is_framework and name not in self._stored and not (is_callback and is_plain(each))
            if name.startswith("__") or is_framework_s:
                continue
            if isinstance(each, (staticmethod, classmethod, property)):
                continue
            self._look((*place, name), each, functools.partial(set_, name))

    def _function(self, place: Place, function: Any) -> None:
        if isinstance(function, types.MethodType):
            self._look((*place, "__self__"), function.__self__, None)
            function = function.__func__
        code = getattr(function, "__code__", None)
        if code is None or not is_of_script(code.co_filename):
            return
        self._names(place, vars(function), {"__wrapped__"})
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                inside = cell.cell_contents
            except ValueError:  # it is empty
                continue
            self._look((*place, name), inside, functools.partial(setattr, cell, "cell_contents"))
        for number, each in enumerate(function.__defaults__ or ()):
            if isinstance(each, _IN_PLACE):
                self._look((*place, f"default {number}"), each, functools.partial(_refill, each))


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether all of it is numbers, texts, arrays and the like."""
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, np.ndarray):
        return bool(value.dtype != object)
    if isinstance(value, tf.__internal__.EagerTensor):
        return value.dtype != tf.resource and bool(value.dtype != tf.variant)
    if depth > _DEPTH or not isinstance(value, _HOLD):
        return False
    if isinstance(value, dict):
        is_made_plainly = not isinstance(value, collections.defaultdict) or isinstance(value.default_factory, type)
        return is_made_plainly and all(is_plain(k, depth + 1) and is_plain(v, depth + 1) for k, v in value.items())
    return all(is_plain(each, depth + 1) for each in value)


def _refill(held: Any, value: Any) -> None:
    """In place: other names may stand for the same object."""
    held.clear()
    (held.update if isinstance(held, (dict, set)) else held.extend)(value)


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    is_legacy = isinstance(generator, np.random.RandomState)
    return generator.get_state() if is_legacy else generator.bit_generator.state


def _draw_from(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def _local_names(frame: FrameType) -> set[str]:
    code = frame.f_code
    return {*code.co_varnames, *code.co_cellvars, *code.co_freevars}


def _write_back(frame: FrameType) -> None:
    """Let a function have what its `f_locals` has; from Python 3.13 on it does."""
    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _is_own(cls: type) -> bool:
    """Whether a class is the script's own."""
    return _is_own_module(sys.modules.get(cls.__module__))


def _is_framework(cls: type) -> bool:
    return cls.__module__.split(".")[0] in ("tensorflow", "keras", "tf_keras")


def _is_own_module(module: Any) -> bool:
    path = getattr(module, "__file__", None)
    return isinstance(module, types.ModuleType) and isinstance(path, str) and is_of_script(path)


def _namespaces() -> tuple[type, ...]:
    argparse = sys.modules.get("argparse")
    return () if argparse is None else (argparse.Namespace,)


def _texts(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def words(place: Place) -> str:
    """For messages: `Trainer.history`."""
    return ".".join(str(each).rpartition(" ")[2] for each in place)
