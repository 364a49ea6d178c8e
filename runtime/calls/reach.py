"""What Python tells of functions, classes and modules: whether they are the script's, and their code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..foundation import is_users


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


def code_of(thing: Any) -> CodeType | None:
    """That of a function, or of what is as good as one; objects of the script's own are not asked."""
    if not isinstance(thing, FunctionType) and is_of_users(thing):
        return None
    code = getattr(thing, "__code__", None)
    return code if isinstance(code, CodeType) else None


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
