"""What Keras keeps besides its objects: Keras 3's stateless scope, in which variables have values that it was given and
are assigned none, the generator of all who name none, and how many things have been named by their kind.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from .names import Contents, Restored

_GENERATOR = "global_seed_generator"


def keeps_no_state() -> bool:
    """Whether this thread is in one: `stateless_call`, or Keras building a layer by calling it, of which it uses again
    when it trains what is traced then."""
    return _scope() is not None


def of_keras() -> Iterator[Restored]:
    """The values and losses of the scope that this thread is in, the generator, and the names that were given."""
    scope = _scope()
    if scope is not None:
        yield Contents(scope.state_mapping)
        yield Contents(scope.losses)
    if (state := _global_state()) is not None:
        yield _Generator(state)
    yield from map(Contents, _names())


def has_generator() -> bool:
    """Whether there is the generator of Keras 3 that all draw by who name none: the first of them makes it."""
    return bool(generator_state())


def generator_state() -> list[Any]:
    """The variable that is its state, if there is one."""
    state = _global_state()
    made = None if state is None else state.get_global_attribute(_GENERATOR)
    return [] if made is None else [made.state]


class _Generator:
    """That generator, which a look may make."""

    def __init__(self, state: Any) -> None:
        self._state, self._made = state, state.get_global_attribute(_GENERATOR)

    def put_back(self) -> None:
        """There is none, if there was none: the script makes it of a seed that it draws."""
        if self._state.get_global_attribute(_GENERATOR) is not self._made:
            self._state.set_global_attribute(_GENERATOR, self._made)


def _global_state() -> Any:
    return sys.modules.get("keras.src.backend.common.global_state")


def _names() -> list[Any]:
    """Of Keras 3, and of Keras 2, for each graph in which it makes layers. What counts them is public, and does so."""
    found: list[Any] = []
    if (state := _global_state()) is not None:
        names: dict[str, int] = collections.defaultdict(int)
        found = [state.get_global_attribute("object_name_uids", names, set_to_default=True)]
    for package in ("keras", "tf_keras"):
        backend: Any = sys.modules.get(f"{package}.src.backend")
        if hasattr(backend, "PER_GRAPH_OBJECT_NAME_UIDS"):
            with tf.init_scope():
                known = backend.PER_GRAPH_OBJECT_NAME_UIDS
                known.setdefault(backend.get_graph(), collections.defaultdict(int))
            found += known.values()
    return found


def _scope() -> Any:
    """The class of scopes is public; which one there is Keras tells nobody."""
    module = sys.modules.get("keras.src.backend.common.stateless_scope")
    return None if module is None else module.get_stateless_scope()
