"""A `tf.function` inside a divided call of the script's own code.

Its Python runs at each call, for the operations to be seen one by one. In one process it runs once for each kind of
arguments, and what it has read then holds for good.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from ..foundation import TfdpError
from . import guard, sight
from .effects import of_code
from .muted import muted
from .names import put_back

_PLAIN = (bool, int, float, str, bytes, type(None), tf.DType)
_first: weakref.WeakKeyDictionary[Any, dict[Any, list[Any]]] = weakref.WeakKeyDictionary()


def as_compiled(function: Any, python: Callable[..., Any]) -> Callable[..., Any]:
    """`python`, which stands for such a function in a divided call.

    Raises:
        TfdpError: it computes otherwise than at its first call of that kind.
    """

    @functools.wraps(python)
    def called(*arguments: Any, **options: Any) -> Any:
        here, watching = sight.now(), guard.now()
        if here is None or watching is None or not here.is_in_earnest():
            return python(*arguments, **options)
        kind = _kind(function, here, (arguments, options))
        known = _first.setdefault(function, {})
        again = _unseen(python) if kind in known else contextlib.nullcontext()
        with watching.recorded() as operations, here.for_good(strictly=kind in known), again:
            found = python(*arguments, **options)
        if known.setdefault(kind, operations) != operations:
            raise TfdpError(
                f"{getattr(python, '__qualname__', python)}, which tf.function compiles, computes otherwise than when "
                "it was first called: what it reads in Python has changed. In one process that makes no difference, as "
                "it has been compiled by then. Give it as an argument, or keep it in a tf.Variable"
            )
        return found

    return called


@contextlib.contextmanager
def _unseen(python: Callable[..., Any]) -> Iterator[None]:
    """What it prints and changes in Python it does not in one process."""
    before, _ = of_code(python)
    with muted():
        yield
    put_back(before)


def _kind(function: Any, here: sight.Sight, structure: Any) -> Any:
    """By what TensorFlow compiles it once more: the batch's length, dtypes, shapes, and values that are no tensors."""
    if function.input_signature is not None:
        return None
    leaves = tf.nest.flatten(structure, expand_composites=True)
    return here.whole(), str(tf.nest.map_structure(lambda _: None, structure)), *map(_of_leaf, leaves)


def _of_leaf(leaf: Any) -> Any:
    if tf.is_tensor(leaf):
        shape = leaf.shape
        return leaf.dtype, None if shape.rank is None else tuple(shape)
    return leaf if isinstance(leaf, _PLAIN) else id(leaf)
