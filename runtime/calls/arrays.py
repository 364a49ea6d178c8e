"""NumPy's arrays that code of the script's own is given, and would find to be tensors where its call is divided."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

from ..foundation import is_users
from .reach import instructions, named, reached

_ASKS = frozenset({"callable", "dir", "getattr", "hasattr", "id", "isinstance", "issubclass", "type", "vars"})
_STORES = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")


def may_tell(roots: Iterable[Any]) -> bool:
    """Whether code could tell an array from a tensor of the same numbers, or change it: by asking what it is, by NumPy,
    or in place. Where an array has what a tensor has not, no graph can be built of the code."""
    return any(map(_may_tell, reached(*roots)))


def _may_tell(thing: Any) -> bool:
    module = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
    if isinstance(thing, types.ModuleType | type | Callable) and str(module).split(".")[0] == "numpy":
        return True
    code = getattr(thing, "__code__", None)
    if not isinstance(code, types.CodeType) or not is_users(code.co_filename):
        return False
    return bool(_ASKS & named(code)) or any(map(_is_in_place, instructions(code)))


def _is_in_place(step: Any) -> bool:
    return (
        step.opname in _STORES
        or step.opname.startswith("INPLACE_")
        or (step.opname == "BINARY_OP" and step.argrepr.endswith("="))
    )
