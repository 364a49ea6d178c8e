"""`dp.init(shard_calls=True, batch_norm="local")`: each worker normalises by the moments of its own rows.

What such a layer assigns to its moving statistics is then each worker's own: they are averaged with the next gradients.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..framework import raw
from ..job import current, normalises_locally
from .look import is_looking

_assigned: dict[int, Any] = {}


def assigns(*variables: Any) -> None:
    """A layer in a divided call assigns what follows from this worker's rows to these variables."""
    if normalises_locally() and not is_looking():
        _assigned.update((id(raw(each).handle), raw(each)) for each in variables)


class MovingStatistics:
    """These variables, as a passenger of an exchange of gradients (`gradients.Passenger`)."""

    def __init__(self) -> None:
        self._variables = list(_assigned.values())

    def sent(self, dtype: tf.DType) -> Any:
        """This worker's values, one after the other."""
        return tf.concat(
            [tf.zeros([0], dtype), *(tf.cast(tf.reshape(each, [-1]), dtype) for each in self._variables)], 0
        )

    def received(self, total: Any, ranks: int) -> None:
        """Assign the mean over the workers, given as the sum, or as the average over `ranks`."""
        mean = total * ranks / current().topology.size
        sizes = [each.shape.num_elements() for each in self._variables]
        for each, values in zip(self._variables, tf.split(mean, sizes) if sizes else (), strict=True):
            each.assign(tf.cast(tf.reshape(values, each.shape), each.dtype))
