"""What names hold before a look: attributes of layers, globals of the script, variables that functions close over."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from ..keras import is_keras
from .reach import attributes, closed_over, public

_MISSING = object()


class Restored(Protocol):
    """What a look may change, and puts back.

    are_scripts: whether it is the script that changes it, and not a framework, which keeps books.
    """

    are_scripts: bool

    def changed(self) -> dict[str, Any]:
        """Names that hold another value than before, or one with other contents."""

    def put_back(self) -> None:
        """All is again as it was."""


_CONTAINERS = (list, dict, set)
# What Python gives a module.
_OF_MODULES = frozenset(
    """
    __annotations__ __builtins__ __cached__ __doc__ __file__ __loader__ __name__ __package__ __path__ __spec__
    __warningregistry__
    """.split()  # noqa: SIM905 - a list of words
)
# By what TensorFlow's wrapper of a list sees that the list was changed without it; private to it.
_SNAPSHOT = "_last_wrapped_list_snapshot"
_PLAIN = (bool, bytes, complex, float, int, str, tuple, type(None), list, dict, set, np.generic)


class Names:
    """A namespace, and what is in those of its values that are lists, dictionaries or sets.

    are_scripts: whether it is the script that chooses the names, and not a framework, which keeps books. books: names
    among them that a framework chooses nevertheless.
    """

    def __init__(
        self,
        read: Callable[[], Mapping[str, Any]],
        write: Callable[[str, Any], None],
        *,
        are_scripts: bool,
        books: frozenset[str] = frozenset(),
    ) -> None:
        self.read, self._write, self.are_scripts, self._books = read, write, are_scripts, books
        self._held = dict(read())
        self._within = {
            name: _copied(inner) for name, value in self._held.items() if (inner := _inner(value)) is not None
        }

    def changed(self) -> dict[str, Any]:
        """Names that hold another value than before, or one with other contents."""
        return {name: value for name, value in self.read().items() if not self._has(name, value)}

    def _has(self, name: str, value: Any) -> bool:
        if name in self._books:
            return True
        if self._held.get(name, _MISSING) is not value:
            return False
        return name not in self._within or _same(self._within[name], _inner(value))

    def put_back(self) -> None:
        """All names hold again what they held."""
        now = self.read()
        for name in [name for name in now if name not in self._held]:
            self._write(name, _MISSING)
        for name, value in self._held.items():
            if now.get(name, _MISSING) is not value:
                self._write(name, value)
        for name, copied in self._within.items():
            inner = _inner(self._held[name])
            if not _same(copied, inner):
                _fill_again(inner, copied)


def put_back(names: Iterable[Restored]) -> None:
    """All of them hold again what they held."""
    for each in names:
        each.put_back()


def of_objects(objects: Iterable[Any]) -> Iterator[Names]:
    """The attributes of layers, and of what they hold of Keras': a layer that draws by a seed of its own in Keras 2
    counts with such an object.
    """
    for each in objects:
        yield of_attributes(each, are_scripts=not is_keras(type(each)))
        beside = (value for value in vars(each).values() if is_keras(type(value)) and hasattr(value, "__dict__"))
        yield from (of_attributes(value, are_scripts=False) for value in beside if not hasattr(value, "call"))


def of_function(function: Any, seen: set[int]) -> Iterator[Names]:
    """The globals, each once by `seen`, the closed-over variables and the attributes of a function of the script's."""
    if id(function.__globals__) not in seen:
        seen.add(id(function.__globals__))
        yield of_globals(function.__globals__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    read = functools.partial(closed_over, function)
    yield Names(read, lambda name, value: _fill(cells[name], value), are_scripts=True)
    yield of_attributes(function)


def of_globals(held: dict[str, Any]) -> Names:
    """The names of a module of the script's."""

    def read() -> dict[str, Any]:
        return {name: value for name, value in held.items() if name not in _OF_MODULES}

    return Names(read, _writer(held), are_scripts=True)


def of_attributes(thing: Any, *, are_scripts: bool = True) -> Names:
    """What an object holds by names. Those that begin with "_" and that Keras gives its layers are its books."""
    books = frozenset(name for name in names_of_keras(type(thing)) if name.startswith("_"))
    read, write = functools.partial(attributes, thing), functools.partial(_write_to, thing)
    return Names(read, write, are_scripts=are_scripts, books=books)


def of_plain_attributes(thing: Any) -> Names:
    """Those of an object of a framework's that are numbers, texts or flags, and lists and the like of them: what the
    script may have put there, or the framework counts."""

    def read() -> dict[str, Any]:
        return {name: value for name, value in vars(thing).items() if isinstance(value, _PLAIN)}

    return Names(read, functools.partial(_write_to, thing), are_scripts=False)


def names_of_keras(cls: type) -> frozenset[str]:
    """The attributes that Keras gives a layer or model of its own; none for other classes."""
    base = (each for each in cls.__mro__ if is_keras(each) and each.__name__ in ("Layer", "Model"))
    return _names_of_keras(next(base, None))


@functools.cache
def _names_of_keras(base: Any) -> frozenset[str]:
    return frozenset(vars(base(name="tfdp"))) if base else frozenset()  # a name, else the next layer's were another


def of_class(cls: type) -> Names:
    """What a class of the script's own holds."""
    return Names(functools.partial(public, cls), functools.partial(_write_to_class, cls), are_scripts=True)


class Contents:
    """What is in a list, dictionary or set of the script's."""

    are_scripts = True

    def __init__(self, container: Any) -> None:
        self._container, self._wrapper = _inner(container), container
        self._before = _copied(self._container)

    def changed(self) -> dict[str, Any]:
        """All of it, where something has changed."""
        return {} if _same(self._before, self._container) else {type(self._container).__name__: self._container}

    def put_back(self) -> None:
        """It holds again what it held."""
        if not _same(self._before, self._container):
            _fill_again(self._container, self._before)
            if _SNAPSHOT in getattr(self._wrapper, "__dict__", {}):
                setattr(self._wrapper, _SNAPSHOT, list(self._before))


def containers_in(structure: Any) -> Iterator[Any]:
    """The lists and dictionaries in nested ones."""
    if isinstance(structure, list | dict):
        yield structure
    if isinstance(structure, list | dict | tuple):
        for each in structure.values() if isinstance(structure, dict) else structure:
            yield from containers_in(each)


def unchanging(call: Callable[..., Any], refuse: Callable[[str], None]) -> Callable[..., Any]:
    """A call that is refused if it changes lists or dictionaries that it is given: what it is given are copies."""

    def called(*arguments: Any, **options: Any) -> Any:
        given = [Contents(each) for each in containers_in((arguments, *options.values()))]
        found = call(*arguments, **options)
        if any(each.changed() for each in given):
            refuse("changes a list or dictionary that it is given")
        return found

    return called


class Numbers:
    """The numbers of an array of the script's."""

    are_scripts = True

    def __init__(self, array: Any) -> None:
        self._array, self._before = array, array.copy()

    def changed(self) -> dict[str, Any]:
        """All of them, where one has changed."""
        same = np.array_equal(self._array, self._before, equal_nan=self._array.dtype.kind in "fc")
        return {} if same else {"array": self._array.tobytes()}

    def put_back(self) -> None:
        """It has again the numbers that it had."""
        if self.changed():
            self._array[...] = self._before


def _write_to(thing: Any, name: str, value: Any) -> None:
    """As no method of its class sees it."""
    held = getattr(thing, "__dict__", {})
    if name in held or not hasattr(type(thing), name) or not hasattr(getattr(type(thing), name), "__set__"):
        _writer(held)(name, value)
    elif value is _MISSING:
        object.__delattr__(thing, name)
    else:
        object.__setattr__(thing, name, value)


def _writer(held: dict[str, Any]) -> Callable[[str, Any], None]:
    def write(name: str, value: Any) -> None:
        if value is _MISSING:
            held.pop(name, None)
        else:
            held[name] = value

    return write


def _write_to_class(cls: type, name: str, value: Any) -> None:
    if value is _MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, value)


def _fill(cell: Any, value: Any) -> None:
    if value is _MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _inner(value: Any) -> Any:
    """The container of a value that is one, or that TensorFlow has wrapped to track it; None for others."""
    if not isinstance(value, _CONTAINERS):
        return None
    wrapped = getattr(value, "_storage", None) if isinstance(value, list) else getattr(value, "__wrapped__", None)
    return wrapped if isinstance(wrapped, _CONTAINERS) else value


def _copied(container: Any) -> Any:
    return _kind(container)(container)


def _same(copied: Any, container: Any) -> bool:
    if len(copied) != len(container):
        return False
    if isinstance(container, dict):  # in the same order
        pairs = zip(dict.items(copied), dict.items(container), strict=True)
        return all(key is other and one is each for (key, one), (other, each) in pairs)
    if isinstance(container, set):
        return bool(copied == container)
    return all(one is other for one, other in zip(copied, container, strict=True))


def _fill_again(container: Any, copied: Any) -> None:
    """By the methods of Python's own class: what a framework keeps of it is as it was."""
    kind = _kind(container)
    kind.clear(container)
    if kind is list:
        list.extend(container, copied)
    else:
        kind.update(container, copied)


def _kind(container: Any) -> Any:
    return next(kind for kind in _CONTAINERS if isinstance(container, kind))
