"""Each batch of a dataset, with its rows in another order: what rounding makes of the order in which sums are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..record import Array, Delivery
from . import iterators


class Permuted:
    """Rows of batches, and of what is drawn for them, in an order that depends on nothing but their number."""

    def __init__(self, deliveries: Sequence[Delivery]) -> None:
        """deliveries: what the reference's steps read, which tells how many rows a batch has."""
        self._lengths = {len(part) for one in deliveries for part in one.parts}

    def install(self) -> None:
        """Wrap iterators of datasets."""
        iterators.wrap(self._following)

    def draw(self, drawn: Array) -> Array:
        """Numbers drawn in the model; those for each row of a batch go with their rows."""
        return np.ascontiguousarray(drawn[order(len(drawn))]) if len(drawn) in self._lengths else drawn

    def _following(self, following: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def followed(this: Any) -> Any:
            element = following(this)
            flat = tf.nest.flatten(element, expand_composites=False)
            if not flat or not all(isinstance(part, tf.Tensor) and part.shape.rank for part in flat):
                return element  # no batch, or one whose rows are not those of its tensors
            taken = tf.numpy_function(self._order, [tf.shape(part)[0] for part in flat], tf.int64)
            permuted = [tf.gather(part, taken) for part in flat]
            for part, given in zip(permuted, flat, strict=True):
                part.set_shape(given.shape)
            return tf.nest.pack_sequence_as(element, permuted)

        followed.__name__ = following.__name__
        return tf.autograph.experimental.do_not_convert(followed)  # type: ignore[no-any-return]

    def _order(self, *lengths: Any) -> Array:
        first = int(lengths[0])
        batch = first in self._lengths and all(int(length) == first for length in lengths)
        return order(first) if batch else np.arange(first)


def order(rows: int) -> Array:
    """The order of that many rows."""
    # Not by NumPy's `default_rng`, which a proof watches.
    return np.random.Generator(np.random.PCG64(rows)).permutation(rows)
