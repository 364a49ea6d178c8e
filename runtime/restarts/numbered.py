"""Variables by their kind, and how many of that kind had been made before: processes that make the same ones may make
those of several kinds in another order, as a checkpoint's counter before or after what an optimizer remembers."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from .state import Kind, is_kept, kind_of

Key = tuple[Kind, int]


class Numbered:
    """Those that are made from now on and for good."""

    def __init__(self) -> None:
        self.counts: dict[Kind, int] = {}
        self._known: dict[Key, weakref.ref[Any]] = {}

    def made(self, variable: Any) -> Key:
        """It is one more."""
        kind = kind_of(variable)
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        self._known[kind, number] = weakref.ref(variable)
        return kind, number

    def some(self, first: int, count: int) -> dict[Key, Any]:
        """So many of those that exist and have a value, others with each `first`."""
        keys = list(self._known)
        chosen = {keys[(first + number) % len(keys)] for number in range(count)} if keys else set()
        return self.given(chosen)

    def given(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Of these those that exist and have a value."""
        found = {key: self._known[key]() for key in keys if key in self._known}
        return {key: each for key, each in found.items() if each is not None and is_kept(each)}

    def living(self) -> dict[Key, Any]:
        """Those that exist and have a value."""
        found = {key: variable for key, each in self._known.items() if (variable := each()) is not None}
        self._known = {key: self._known[key] for key in found}
        return {key: each for key, each in found.items() if is_kept(each)}
