"""Layers whose result depends on which examples a process has: they compute the same in every run of a proof."""

import functools
from typing import Any

import tensorflow as tf

NORMALIZED = "batch statistics: BatchNormalization uses its moving ones, in the reference and on every rank"


class Layers:
    """Changes Keras' layers before the script uses them, and remembers whether it did."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}

    @property
    def neutralised(self) -> tuple[str, ...]:
        """What was changed, of what the script used."""
        return tuple(self._found)

    def install(self) -> None:
        """BatchNormalization normalises by the batch at hand, whose statistics differ by rank: a known difference."""
        layer = tf.keras.layers.BatchNormalization
        # In Keras 2 the base class of this and of SyncBatchNormalization has the method.
        owner = next(cls for cls in layer.__mro__ if "call" in vars(cls))
        original = owner.call

        @functools.wraps(original)
        def call(this: Any, inputs: Any, training: Any = None, **options: Any) -> Any:
            if tf.is_tensor(training) or training:
                self._found[NORMALIZED] = None
            return original(this, inputs, training=False, **options)

        owner.call = tf.autograph.experimental.do_not_convert(call)
