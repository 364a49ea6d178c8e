"""What waits until the script has imported TensorFlow.

Imported for it earlier, TensorFlow and Keras would not find what the script sets before (`KERAS_HOME`, `TF_…`), and
would draw from generators that it has not seeded yet.
"""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

TENSORFLOW = "tensorflow"
_FRAMEWORKS = (TENSORFLOW, "keras", "tf_keras")  # each imports TensorFlow


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it notices when an import that leads to TensorFlow is through."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []
        self._depth = 0

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _FRAMEWORKS:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                self._watch(spec.loader)
                return spec
        return None

    def _watch(self, loader: Any) -> None:
        if loader is None:
            return
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            self._depth += 1
            try:
                execute(module)
            finally:
                self._depth -= 1
            if self._depth == 0:
                self.go_on()

        loader.exec_module = exec_module

    def go_on(self) -> None:
        """Do what has waited."""
        if TENSORFLOW not in sys.modules:
            return
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        while self.waiting:
            self.waiting.pop(0)()

    def is_busy(self) -> bool:
        """Whether an import is going on that is not through."""
        return self._depth > 0


_finder = _Finder()


def is_imported() -> bool:
    """Whether the script has imported TensorFlow."""
    return TENSORFLOW in sys.modules and not _finder.is_busy()


def when_imported(do: Callable[[], object]) -> None:
    """Call `do` as soon as the script has imported TensorFlow, or Keras, which does; at once where it has."""
    if is_imported():
        do()
        return
    _finder.waiting.append(do)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def import_now() -> None:
    """Import TensorFlow, for what cannot wait."""
    importlib.import_module(TENSORFLOW)
