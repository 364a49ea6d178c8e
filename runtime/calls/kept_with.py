"""What is found of a layer, a module or a function is kept with it: it may refer to that, and goes when it goes."""

from __future__ import annotations

import types
import weakref
from typing import Any

import tensorflow as tf

_NAME = "_tfdp_kept"


class _KeptWith:
    """The things of one owner, by their kinds; copies of the owner have none of them."""

    def __init__(self, owner: Any) -> None:
        self.owner = weakref.ref(owner)
        self.things: dict[str, Any] = {}

    def __deepcopy__(self, _: Any) -> None:
        return None

    def __reduce__(self) -> Any:
        return type(None), ()


_others: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


def kept_with(owner: Any, kind: str, made: Any) -> Any:
    """What is kept of this kind with an owner; `made`, if there is nothing yet."""
    if not isinstance(owner, tf.Module | types.FunctionType) and not hasattr(type(owner), "_flatten_layers"):
        return _others.setdefault(owner, {}).setdefault(kind, made)  # of whose attributes the script may ask
    held = vars(owner)
    found = held.get(_NAME)
    if not isinstance(found, _KeptWith) or found.owner() is not owner:
        found = held[_NAME] = _KeptWith(owner)
    return found.things.setdefault(kind, made)
