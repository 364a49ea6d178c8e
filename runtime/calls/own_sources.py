"""Gradients by what a divided call has given, where other results of the same call follow from it.

As those of one process they count all ways from the result to the loss: those inside the call, too, which go from a
worker's own rows to other rows and never through what is gathered of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from ..foundation import TfdpError, call_site

Tensor = Any
_MARK = "_tfdp_own_source"  # of a result


class _Source(NamedTuple):
    """The tensor inside the call that a result stands for, and how its gradient becomes that by the result.

    parted: the call's name, where others follow from it, and no tape knows of that; else "".
    """

    inside: Tensor
    whole: Callable[[Tensor], Tensor]
    parted: str


def mark(result: Tensor, inside: Tensor, whole: Callable[[Tensor], Tensor], parted: str = "") -> Tensor:
    """`result`, which stands for a tensor inside the call; `whole` turns a gradient by that into one by the result.

    parted: the call's name, where another result follows from this one, and no tape knows of that.
    """
    setattr(result, _MARK, _Source(inside, whole, parted))
    return result


def taken(take: Callable[..., Any], sources: Sequence[Any], unconnected: tf.UnconnectedGradients) -> list[Any]:
    """The gradients by `sources`: what `take(sources, unconnected_gradients=…)` gives, by tensors inside calls where a
    tape has recorded these."""
    known = {index: found for index, each in enumerate(sources) if (found := getattr(each, _MARK, None)) is not None}
    if not known:
        return list(take(list(sources), unconnected_gradients=unconnected))
    for each in known.values():
        if each.parted:
            raise TfdpError(
                f"the gradient at {call_site()} is one by a result of {each.parted}, from which another one follows: "
                "the call runs eagerly as one operation, inside of which no tape records. Take it in a tf.function"
            )
    inside = [each.inside for each in known.values()]
    found = take([*sources, *inside], unconnected_gradients=tf.UnconnectedGradients.NONE)
    gradients = list(found[: len(sources)])
    for (index, source), by_inside in zip(known.items(), found[len(sources) :], strict=True):
        gradients[index] = gradients[index] if by_inside is None else source.whole(tf.convert_to_tensor(by_inside))
    if tf.UnconnectedGradients(unconnected) is tf.UnconnectedGradients.ZERO:
        gradients = [tf.zeros_like(to) if each is None else each for each, to in zip(gradients, sources, strict=True)]
    return gradients
