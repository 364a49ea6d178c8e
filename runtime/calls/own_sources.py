"""Gradients by what a divided call has given, where other results of the same call follow from it.

As those of one process they count all ways from the result to the loss: those inside the call, too, which go from a
worker's own rows to other rows and never through what is gathered of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from .rows import Split, mean, own_gradient

Tensor = Any
_MARK = "_tfdp_own_source"  # of a whole tensor


class _Shared(NamedTuple):
    """What no rows are in, and each worker's rows may follow from."""

    rows: Tensor
    name: str

    def whole(self, gradient: Tensor) -> Tensor:
        """The gradient by it, of which each worker counts what its own rows do with it."""
        return mean(tf.convert_to_tensor(gradient), self.name)


class _Source(NamedTuple):
    """A worker's own rows that a whole tensor is gathered of."""

    rows: Tensor
    split: Split
    name: str

    def whole(self, gradient: Tensor) -> Tensor:
        """The gradient by the whole tensor."""
        return own_gradient(tf.convert_to_tensor(gradient), self.split, self.name)


def mark(whole: Tensor, rows: Tensor, split: Split, name: str) -> Tensor:
    """`whole`, with what it is gathered of."""
    setattr(whole, _MARK, _Source(rows, split, name))
    return whole


def mark_shared(tensor: Tensor, name: str) -> Tensor:
    """A tensor that a divided call gives as it is."""
    setattr(tensor, _MARK, _Shared(tensor, name))
    return tensor


def taken(take: Callable[..., Any], sources: Sequence[Any], unconnected: tf.UnconnectedGradients) -> list[Any]:
    """The gradients by `sources`: what `take(sources, unconnected_gradients=…)` gives, by own rows where a tape has
    recorded what was gathered of them."""
    known = {index: found for index, each in enumerate(sources) if (found := getattr(each, _MARK, None)) is not None}
    if not known:
        return list(take(list(sources), unconnected_gradients=unconnected))
    rows = [each.rows for each in known.values()]
    found = take([*sources, *rows], unconnected_gradients=tf.UnconnectedGradients.NONE)
    gradients = list(found[: len(sources)])
    for (index, source), by_rows in zip(known.items(), found[len(sources) :], strict=True):
        gradients[index] = gradients[index] if by_rows is None else source.whole(by_rows)
    if tf.UnconnectedGradients(unconnected) is tf.UnconnectedGradients.ZERO:
        gradients = [tf.zeros_like(to) if each is None else each for each, to in zip(gradients, sources, strict=True)]
    return gradients
