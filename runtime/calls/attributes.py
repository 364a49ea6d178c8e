"""Attributes of objects as they are before a look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Attributes:
    """The attributes of one object, and what is in those that are lists, dictionaries or sets."""

    def __init__(self, of: Any) -> None:
        self.of = of
        self._held = dict(vars(of))
        self._within = {name: _copied(value) for name, value in self._held.items() if _is_container(value)}

    def has(self, name: str, value: Any) -> bool:
        """Whether the object had this value there."""
        if name not in self._held or self._held[name] is not value:
            return False
        return name not in self._within or _same(self._within[name], value)

    def put_back(self) -> None:
        """The object has all of them again, and no others."""
        vars(self.of).clear()
        vars(self.of).update(self._held)
        for name, copied in self._within.items():
            value = self._held[name]
            if not _same(copied, value):
                value.clear()
                value.extend(copied) if isinstance(value, list) else value.update(copied)


def put_back(attributes: Iterable[Attributes]) -> None:
    """All of them have their attributes again."""
    for each in attributes:
        each.put_back()


def _is_container(value: Any) -> bool:
    return type(value) in (list, dict, set)  # a framework's own keep books of what is put into them


def _copied(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else set(value) if isinstance(value, set) else list(value)


def _same(copied: Any, value: Any) -> bool:
    if len(copied) != len(value):
        return False
    if isinstance(value, dict):
        return all(key in copied and copied[key] is each for key, each in value.items())
    if isinstance(value, set):
        return bool(copied == value)
    return all(one is other for one, other in zip(copied, value, strict=True))
