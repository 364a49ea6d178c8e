"""Keras 3's stateless scope, in which variables have values that it was given, and are assigned none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from .names import Contents


def keeps_no_state() -> bool:
    """Whether this thread is in one: `stateless_call`, or Keras building a layer by calling it, of which it uses again
    when it trains what is traced then."""
    return _scope() is not None


def of_scope() -> Iterator[Contents]:
    """The values and losses of the scope that this thread is in."""
    scope = _scope()
    if scope is not None:
        yield Contents(scope.state_mapping)
        yield Contents(scope.losses)


def _scope() -> Any:
    """The class of scopes is public; which one there is Keras tells nobody."""
    module = sys.modules.get("keras.src.backend.common.stateless_scope")
    return None if module is None else module.get_stateless_scope()
