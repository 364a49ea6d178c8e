"""Rows that are looked up in a table: for all of the batch, so that slices of its gradient are those of one process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..framework import transparent
from . import guard, sight


def hook_embedding(embedding: Any) -> None:
    """Of a Keras: what its layer looks up, whichever operations it takes for that."""
    original = embedding.call

    @functools.wraps(original)
    def call(self: Any, inputs: Any) -> Any:
        return _looked_up(self, inputs, functools.partial(original, self))

    embedding.call = call


def hook_variables() -> None:
    """What `tf.gather`, `tf.gather_nd` and `tf.nn.embedding_lookup` look up in a variable. These methods are public,
    their class is not; a variable made to ask for it would be counted among the script's."""
    from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

    owner: Any = BaseResourceVariable
    for name in ("sparse_read", "gather_nd"):
        setattr(owner, name, _of_variable(vars(owner)[name]))


def _of_variable(original: Callable[..., Any]) -> Callable[..., Any]:
    @transparent
    @functools.wraps(original)
    def read(self: Any, indices: Any, name: Any = None) -> Any:
        return _looked_up(self, indices, lambda rows: original(self, rows, name))

    return read


def _looked_up(table: Any, rows: Any, look_up: Callable[[Any], Any]) -> Any:
    """`look_up(rows)`, inside a divided call as that says."""
    here = sight.now()
    if here is None or sight.is_lookup() or not isinstance(rows, tf.Tensor):
        return look_up(rows)

    def known(found: Any) -> Any:
        with sight.lookup():
            return look_up(found)

    return guard.looked_up(rows, lambda: here.looked_up(table, rows, known))
