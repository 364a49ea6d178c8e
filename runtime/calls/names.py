"""What Keras' layers hold by names before a look, and lists and the like of what is given to a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from ..keras import is_keras

_MISSING = object()
_CONTAINERS = (list, dict, set)
# By what TensorFlow's wrapper of a list sees that the list was changed without it; private to it.
_SNAPSHOT = "_last_wrapped_list_snapshot"


class Restored(Protocol):
    """What a look may change, and puts back."""

    def put_back(self) -> None:
        """All is again as it was."""


class Attributes:
    """The attributes of an object, and what is in those that are lists, dictionaries or sets."""

    def __init__(self, thing: Any) -> None:
        self._names = vars(thing)
        self._held = dict(self._names)
        inner = ((value, _inner(value)) for value in self._held.values())
        self._within = [Contents(value) for value, each in inner if each is not None]

    def put_back(self) -> None:
        """All names hold again what they held."""
        for name in [name for name in self._names if name not in self._held]:
            del self._names[name]
        for name, value in self._held.items():
            if self._names.get(name, _MISSING) is not value:
                self._names[name] = value
        put_back(self._within)


class Contents:
    """What is in a list, dictionary or set."""

    def __init__(self, container: Any) -> None:
        self._container, self._wrapper = _inner(container), container
        self._before = _kind(self._container)(self._container)

    @property
    def is_changed(self) -> bool:
        """Whether it holds something else by now."""
        return not _same(self._before, self._container)

    def put_back(self) -> None:
        """It holds again what it held."""
        if self.is_changed:
            _fill_again(self._container, self._before)
            if _SNAPSHOT in getattr(self._wrapper, "__dict__", {}):
                setattr(self._wrapper, _SNAPSHOT, list(self._before))


def put_back(names: Iterable[Restored]) -> None:
    """All of them hold again what they held."""
    for each in names:
        each.put_back()


def of_objects(objects: Iterable[Any]) -> Iterator[Attributes]:
    """The attributes of layers, and of what they hold of Keras': a layer that draws by a seed of its own in Keras 2
    counts with such an object.
    """
    for each in objects:
        yield Attributes(each)
        beside = (value for value in vars(each).values() if is_keras(type(value)) and hasattr(value, "__dict__"))
        yield from (Attributes(value) for value in beside if not hasattr(value, "call"))


def unchanging(call: Callable[..., Any], refuse: Callable[[str], None]) -> Callable[..., Any]:
    """A call that is refused if it changes lists or dictionaries that it is given: what it is given are copies."""

    def called(*arguments: Any, **options: Any) -> Any:
        given = [Contents(each) for each in _containers_in((arguments, *options.values()))]
        found = call(*arguments, **options)
        if any(each.is_changed for each in given):
            refuse("changes a list or dictionary that it is given")
        return found

    return called


def _containers_in(structure: Any) -> Iterator[Any]:
    """The lists and dictionaries in nested ones."""
    if isinstance(structure, list | dict):
        yield structure
    if isinstance(structure, list | dict | tuple):
        for each in structure.values() if isinstance(structure, dict) else structure:
            yield from _containers_in(each)


def _inner(value: Any) -> Any:
    """The container of a value that is one, or that TensorFlow has wrapped to track it; None for others."""
    if not isinstance(value, _CONTAINERS):
        return None
    wrapped = getattr(value, "_storage", None) if isinstance(value, list) else getattr(value, "__wrapped__", None)
    return wrapped if isinstance(wrapped, _CONTAINERS) else value


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
