"""What a script remembers in Python, and in which places: in the names of its modules and running functions, and in
objects of its own classes.

Numbers, texts, arrays, small tensors, lists and the like are kept, and can be put back. Of the rest is known whether
it is the same, or only that something is there.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import hashlib
import io
import pickle
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ..foundation import is_of_script
from ..keras import PACKAGES
from .plain import (
    DRAW,
    EXACTLY,
    HOLD,
    IN_PLACE,
    can_be_refilled,
    draw_from,
    is_framework,
    is_plain,
    parts_of,
    refill,
    state_of,
)
from .rounds import Loaded, local_names, stored_attributes
from .state import digest, pickled

Place = tuple[Any, ...]  # the module, function or class, and the names from there
_MOST_BYTES = 2**20  # of what is kept, and not only compared
_DEPTH = 40
_BUILT = frozenset(("built",))  # of layers and optimizers: whether their variables are made, which is as it is
_SOMETHING = "something"  # of which nothing else is known
# Whose objects remember nothing of a training, or in variables, which are kept by themselves; or show it alone.
_STATELESS = frozenset(
    (
        *("abc", "absl", "builtins", "_io", "io", "logging", "matplotlib", "numpy", "rich", "tensorflow", "tfdp"),
        *("threading", "_thread", "tqdm", "types", "typing", "weakref"),
    )
)


class Thing(NamedTuple):
    """What is in a place. kept: it can be put back; None: only compared. anew: by another thing in its place, too."""

    digest: str
    kept: bytes | None = None
    anew: bool = False


class Memory:
    """All that can be reached from some frames and from the script's modules now."""

    def __init__(
        self, stack: Iterable[FrameType], given: Mapping[FrameType, set[str]], *, with_values: bool = True
    ) -> None:
        """given: the names of frames that are compared only. with_values: False for generators and iterators alone."""
        self._with_values = with_values
        self.things: dict[Place, Thing] = {}
        self.identities: dict[Place, int] = {}  # of what can change: which places have one and the same
        self.iterators: dict[int, tuple[Place, Any]] = {}  # by identity
        self.unknown: list[str] = []  # what could not be looked into
        self._inside: dict[int, list[Place]] = {}  # by the identity of what can change: the plain things it is part of
        self._held: dict[Place, Any] = {}  # plain things that can change
        self._places: dict[int, list[Place]] = {}  # of those, by identity
        self._puts: dict[Place, Callable[[Any], None]] = {}
        self._generators: dict[tuple[str, Any], list[Any]] = {}  # by whose they are, and under which name
        self._owners: dict[Place, str] = {}
        self._makes: dict[Place, Callable[[Any, Any], None]] = {}  # by the place around
        self._seen: dict[int, Any] = {}  # kept alive, as what is looked at may be made on asking
        self._locals: list[tuple[FrameType, dict[str, Any]]] = []
        by_identity = {
            id(each): name for name, each in sorted(sys.modules.items(), reverse=True) if _is_own_module(each)
        }
        modules = {name: sys.modules[name] for name in by_identity.values()}  # the script's own has two names
        self._stored = frozenset().union(*(stored_attributes(str(each.__file__)) for each in modules.values())) - _BUILT
        fixed: dict[int, set[str]] = {}  # of the names of modules
        for frame, names in given.items():
            fixed.setdefault(id(frame.f_globals), set()).update(names - local_names(frame.f_code))
        for name, module in sorted(modules.items()):
            self._names((name,), vars(module), fixed.get(id(vars(module)), set()))
        for number, frame in enumerate(stack):
            if frame.f_locals is not frame.f_globals and frame.f_code.co_name != "<module>":
                held = frame.f_locals
                self._locals.append((frame, held))
                self._names((f"{number} {frame.f_code.co_name}()",), held, given.get(frame, set()))
        for number, places in self._inside.items():  # part of several things, it would be several if they were put back
            found = [*places, *self._places.get(number, ())]
            for place in found if len(found) > 1 else ():
                self.things[place] = self.things[place]._replace(kept=None)

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
        return {key: state_of(found[0]) for key, found in self._generators.items() if len(found) == 1}

    def draw_on(self, states: Mapping[tuple[str, Any], Any]) -> None:
        """Let the generators that are there already be where they were."""
        for key, found in self._generators.items():
            if key in states and len(found) == 1:
                draw_from(found[0], states[key])

    def differences(
        self, things: Mapping[Place, Thing], identities: Mapping[Place, int]
    ) -> tuple[list[Place], list[Place]]:
        """The places with something else in them than before: those that can be put back, and those that cannot.

        A name that is not there any more is not compared if it cannot: who reads it is told by Python.
        """
        put: list[Place] = []
        others: list[Place] = []
        times = collections.Counter(identities.values())
        for place, thing in things.items():
            found, is_shared = self.things.get(place), times[identities.get(place, 0)] > 1
            if found is not None:
                if found.digest != thing.digest:
                    (put if self._can_put(place, thing, found, is_shared=is_shared) else others).append(place)
            elif thing.kept is not None:
                (put if thing.anew and not is_shared and place[:-1] in self._makes else others).append(place)
        there, back = dict[int, int](), dict[int, int]()
        for place in sorted(identities.keys() & self.identities.keys(), key=repr):
            was, is_now = identities[place], self.identities[place]
            if there.setdefault(was, is_now) != is_now or back.setdefault(is_now, was) != was:
                others.append(place)  # it stands for the same as another name, and did not, or the other way round
        return put, others

    def _can_put(self, place: Place, thing: Thing, found: Thing, *, is_shared: bool) -> bool:
        if thing.kept is None or found.kept is None:
            return False
        return not is_shared or can_be_refilled(self._held.get(place), pickle.loads(thing.kept))

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
        if isinstance(value, DRAW):
            self._note(place, state_of(value), functools.partial(draw_from, value), anew=False)
            alike = self._generators.setdefault((self._owners.get(place[:-1], ""), place[-1]), [])
            if all(each is not value for each in alike):
                alike.append(value)
        elif is_plain(value):
            if isinstance(value, (*IN_PLACE, np.ndarray)):
                self.identities[place], self._held[place] = id(value), value
                self._places.setdefault(id(value), []).append(place)
                put = put and functools.partial(refill, value, put)
            self._note(place, value, put)
            for part in parts_of(value):
                self._seen[id(part)] = part
                self._inside.setdefault(id(part), []).append(place)
        else:
            is_known = id(value) in self._seen
            self.identities[place], self._seen[id(value)] = id(value), value
            self.things[place] = Thing(_kind_of(value))
            if len(place) > _DEPTH:
                self.unknown.append(words(place))
            elif not is_known:
                self._into(place, value)

    def _note(self, place: Place, value: Any, put: Callable[[Any], None] | None, *, anew: bool = True) -> None:
        if not self._with_values:
            self.things[place] = Thing(_SOMETHING)
            return
        if isinstance(value, np.ndarray) and value.nbytes > _MOST_BYTES:
            self.things[place] = Thing(digest(value))
            return
        try:
            data = pickled(value)
        except Exception:  # of classes that cannot be found by their names
            self.things[place] = Thing(_SOMETHING)
            self.unknown.append(words(place))
            return
        is_kept = put is not None and len(data) <= _MOST_BYTES
        self.things[place] = Thing(
            hashlib.blake2b(data, digest_size=8).hexdigest(), data if is_kept else None, anew and is_kept
        )
        if put is not None:
            self._puts[place] = put

    def _into(self, place: Place, value: Any) -> None:
        if isinstance(value, (list, tuple, collections.deque)):
            self._note((*place, "length"), len(value), None)
            for number, each in enumerate(value):
                self._look((*place, number), each, None)
        elif isinstance(value, dict):
            if all(map(is_plain, value)):
                self._note((*place, "keys"), list(value), None)
                for key, each in value.items():
                    self._look((*place, key), each, functools.partial(value.__setitem__, key))
            else:
                self.unknown.append(words(place))
        elif isinstance(value, (set, frozenset)):
            self.unknown.append(words(place))
        if type(value) not in EXACTLY:
            self._object(place, value)

    def _object(self, place: Place, value: Any) -> None:
        cls, root = type(value), type(value).__module__.split(".")[0]
        if isinstance(value, (types.FunctionType, types.MethodType)):
            self._function(place, value)
        elif isinstance(value, tf.types.experimental.GenericFunction):
            self._function(place, getattr(value, "python_function", None))
        elif isinstance(value, type):
            if _is_own(value):
                self._attributes(place, value, vars(value), value)
        elif hasattr(cls, "__next__") and not isinstance(value, io.IOBase) and not _is_own(cls):
            self.iterators[id(value)] = place, value
        elif _is_own(cls):
            self._attributes(place, value, getattr(value, "__dict__", {}), cls)
            if any(map(is_framework, cls.__mro__)):
                self._through(place, value)
        elif is_framework(cls):
            self._attributes(place, value, getattr(value, "__dict__", {}), cls)
            self._through(place, value)
        elif isinstance(value, (types.SimpleNamespace, *_namespaces())):
            self._attributes(place, value, vars(value), cls)
        elif root not in _STATELESS or isinstance(value, (np.ndarray, io.StringIO, io.BytesIO)):
            self._of_others(place, value)

    def _of_others(self, place: Place, value: Any) -> None:
        """What another library's object remembers: compared as a whole, or its attributes."""
        if not self._with_values:
            return
        try:
            self._note((*place, "all"), pickle.dumps(value), None)
        except Exception:
            if not getattr(value, "__dict__", None):
                self.unknown.append(f"{words(place)} ({type(value).__name__})")
            for name, each in sorted(getattr(value, "__dict__", {}).items()):
                self._look((*place, name), each, None)

    def _through(self, place: Place, value: Any) -> None:
        """Look into objects of the script's classes, and callbacks, that a framework's object leads to."""
        waiting, known, count = [value], {id(value)}, 0
        while waiting:
            one = waiting.pop()
            held = getattr(one, "__dict__", {}) if one is value or not isinstance(one, HOLD) else one
            for each in list(held.values() if isinstance(held, dict) else held):
                if id(each) in known or isinstance(each, (tf.Variable, tf.Tensor, tf.Graph)):
                    continue
                known.add(id(each))
                cls = type(each)
                if _is_own(cls) or _is_callback(cls):
                    name = vars(each).get("name", count) if hasattr(each, "__dict__") else count
                    self._look((*place, f"{name} {cls.__name__}"), each, None)
                    count += 1
                elif isinstance(each, (set, frozenset)):  # whose order is another in each process
                    continue
                elif isinstance(each, HOLD) or cls.__module__.split(".")[0] in PACKAGES or isinstance(each, tf.Module):
                    waiting.append(each)

    def _attributes(self, place: Place, value: Any, held: Mapping[str, Any], cls: type) -> None:
        """Of an object, or of a class. Where a framework's class is behind it, those to which the script gives values;
        of callbacks, which remember in Python how the training went, all that are plain are compared, too."""
        is_behind = any(map(is_framework, cls.__mro__))
        slots = {name for base in cls.__mro__ for name in _texts(vars(base).get("__slots__", ()))}
        found = {**dict(held), **{name: getattr(value, name) for name in slots if hasattr(value, name)}}
        set_ = functools.partial(type.__setattr__ if isinstance(value, type) else object.__setattr__, value)
        self._makes[place] = set_
        self._owners[place] = cls.__qualname__
        for name, each in found.items():
            is_script_s = not is_behind or name in self._stored
            if name.startswith("__") or not (is_script_s or (_is_callback(cls) and is_plain(each))):
                continue
            if isinstance(each, (staticmethod, classmethod, property)):
                continue
            self._look((*place, name), each, functools.partial(set_, name) if is_script_s else None)

    def _function(self, place: Place, function: Any) -> None:
        if isinstance(function, types.MethodType):
            self._look((*place, "__self__"), function.__self__, None)
            function = function.__func__
        code = getattr(function, "__code__", None)
        if code is None or not is_of_script(code.co_filename):
            return
        self._names(place, vars(function), set())
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                inside = cell.cell_contents
            except ValueError:  # it is empty
                continue
            self._look((*place, name), inside, functools.partial(setattr, cell, "cell_contents"))
        defaults = {f"default {number}": each for number, each in enumerate(function.__defaults__ or ())}
        for name, each in {**defaults, **(function.__kwdefaults__ or {})}.items():
            self._look((*place, name), each, _cannot)


def _cannot(_: Any) -> None:
    """For what can be put back in place alone, and is there."""
    raise AssertionError("a default of a function is another")


def _kind_of(value: Any) -> str:
    """What an object that is not plain is, as far as it is to be the same."""
    cls = type(value)
    if isinstance(value, (types.FunctionType, type)):
        line = value.__code__.co_firstlineno if isinstance(value, types.FunctionType) else 0
        return f"{value.__module__}.{value.__qualname__} {line}"
    if isinstance(value, (types.MethodType, types.BuiltinFunctionType)):
        return value.__qualname__
    if isinstance(value, types.ModuleType):
        return value.__name__
    # What restoring says of a checkpoint is another thing where there was none.
    return _SOMETHING if ".checkpoint." in cls.__module__ else f"{cls.__module__}.{cls.__qualname__}"


def _write_back(frame: FrameType) -> None:
    """Let a function have what its `f_locals` has; from Python 3.13 on it does."""
    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _is_own(cls: type) -> bool:
    """Whether a class is the script's own."""
    return _is_own_module(sys.modules.get(cls.__module__))


def _is_callback(cls: type) -> bool:
    return any(base.__name__ == "Callback" and is_framework(base) for base in cls.__mro__)


def _is_own_module(module: Any) -> bool:
    path = getattr(module, "__file__", None)
    return isinstance(module, types.ModuleType) and isinstance(path, str) and is_of_script(path)


def _namespaces() -> tuple[type, ...]:
    argparse = sys.modules.get("argparse")
    return () if argparse is None else (argparse.Namespace,)


def _texts(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def is_read(place: Place, loaded: Sequence[Loaded]) -> bool:
    """Whether one of the functions on the stack, the innermost first, may have taken what is in a place already."""
    if len(place) > 2:
        return any(place[-1] in each.attributes | each.outer for each in loaded)
    number, blank, _ = str(place[0]).partition(" ")  # that of a function on the stack, else the name of a module
    return place[-1] in loaded[int(number)].own if blank else any(place[-1] in each.common for each in loaded)


def words(place: Place) -> str:
    """For messages: `Trainer.history`."""
    return ".".join(str(each).rpartition(" ")[2] for each in place)
