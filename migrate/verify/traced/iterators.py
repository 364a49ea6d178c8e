"""Wraps what gives the elements of a dataset, where its first iterator is made.

Not before: making one starts TensorFlow, whose devices are then settled, and a script may want to configure them first.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf

Wrapper: TypeAlias = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
_wrappers: list[Wrapper] = []
_wrapped: set[type[Any]] = set()


def wrap(wrapper: Wrapper) -> None:
    """From now on iterators of datasets give their elements through `wrapper`; those asked for later are outside."""
    if not _wrappers:
        begin = tf.data.Dataset.__iter__

        def __iter__(this: Any) -> Any:  # noqa: N807
            made = begin(this)
            _follow(type(made))
            return made

        tf.data.Dataset.__iter__ = tf.autograph.experimental.do_not_convert(__iter__)
    _wrappers.append(wrapper)


def _follow(iterator: type[Any]) -> None:
    if iterator in _wrapped:
        return
    _wrapped.add(iterator)
    for name in ("__next__", "get_next"):
        for wrapper in _wrappers:
            setattr(iterator, name, wrapper(getattr(iterator, name)))
