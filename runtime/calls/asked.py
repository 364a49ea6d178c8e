"""What Python asks of rows in code of the script's own, and cannot be told."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..foundation import is_generated, is_users
from .guard import Guard, is_eager, now


def watch_python() -> None:
    """From now on code of the script's own may not ask how many rows there are where one process would know it, nor for
    their text where they are numbers: nothing that it could be told is right."""
    original = tf.Tensor.shape

    def shape(self: Any) -> Any:
        guard = _asked(self)
        return original.fget(self) if guard is None else _Shape(original.fget(self), guard)

    def text(kind: Callable[[Any], str]) -> Callable[[Any], str]:
        @functools.wraps(kind)
        def told(self: Any) -> str:
            guard = _asked(self)
            if guard is not None and guard.eager is not None:
                guard.refuse("asks in Python for the text of rows")
            return kind(self)

        return told

    attribute, eagerly, eager = tf.Tensor.__getattr__, tf.executing_eagerly, type(tf.constant(0))

    @functools.wraps(attribute)
    def asked(self: Any, name: str) -> Any:
        """What only an eager tensor has."""
        guard = now()
        if guard is not None and guard.eager is not None and hasattr(eager, name) and _is_read_by_user(2):
            guard.refuse(f"asks in Python for {name} of a tensor")
        return attribute(self, name)

    @functools.wraps(eagerly)
    def executing_eagerly() -> bool:
        return (is_eager() and _is_read_by_user(2)) or bool(eagerly())

    tf.Tensor.__getattr__, tf.executing_eagerly = asked, executing_eagerly
    tf.Tensor.shape = property(shape, doc=original.__doc__)
    tf.Tensor.__repr__, tf.Tensor.__str__ = text(tf.Tensor.__repr__), text(tf.Tensor.__str__)


def _asked(tensor: Any) -> Guard | None:
    """The guard of rows that code of the script's own asks for what one process knows of them."""
    guard = now()
    if guard is None or not guard.hides or not guard.is_watched(tensor) or not _is_read_by_user():
        return None
    return guard


def _is_read_by_user(above: int = 3) -> bool:
    path = sys._getframe(above).f_code.co_filename
    return is_users(path) or is_generated(path)


class _Shape(tf.TensorShape):  # type: ignore[misc]
    """The shape of rows, whose first size may not be asked for."""

    def __init__(self, shape: Any, guard: Guard) -> None:
        super().__init__(shape)
        self._guard = guard

    def __getitem__(self, key: Any) -> Any:
        places = range(self.rank)[key]
        if 0 in (places if isinstance(key, slice) else (places,)):
            self._asked()
        return super().__getitem__(key)

    def __iter__(self) -> Any:
        self._asked()
        return super().__iter__()

    def __eq__(self, other: Any) -> bool:
        self._asked()
        return bool(super().__eq__(other))

    __hash__ = tf.TensorShape.__hash__

    @property
    def dims(self) -> Any:
        """All sizes."""
        self._asked()
        return super().dims

    def as_list(self) -> Any:
        """All sizes."""
        self._asked()
        return super().as_list()

    def num_elements(self) -> Any:
        """Of all rows."""
        self._asked()
        return super().num_elements()

    def is_fully_defined(self) -> bool:
        """As far as one process knows."""
        self._asked()
        return bool(super().is_fully_defined())

    def _asked(self) -> None:
        self._guard.refuse("asks in Python how many rows there are")
