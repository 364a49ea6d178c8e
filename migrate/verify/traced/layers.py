"""Layers whose result depends on which examples a process has: they compute the same in every run of a proof."""

import functools
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from ..judge import EPSILON, EPSILONS
from ..record import NORMALIZED
from . import made as _made
from .frames import Lines, frames
from .notes import Notes


class Layers:
    """Knows the line that made each of Keras' layers, and changes BatchNormalization before the script uses it."""

    def __init__(self, lines: Lines, changed: Notes) -> None:
        self._lines = lines
        self._changed = changed
        self._made: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        # The dtype of least precision that a layer computes in. Keras knows its policy by thread: this asks the layers.
        self.compute = "float32"

    def watch(self) -> None:
        """Remember where layers are made, and what they compute in, from now on."""

        def made(layer: Any) -> None:
            self._made.setdefault(layer, self._lines.here())
            # A layer of words asks for what its own __init__ sets later.
            computes = getattr(layer, "compute_dtype", None) or "float32"
            self.compute = max(self.compute, computes, key=lambda dtype: EPSILONS.get(dtype, EPSILON))

        _made.watch(tf.keras.layers.Layer, made)

    def install(self) -> None:
        """BatchNormalization normalises by the batch at hand, whose statistics differ by rank: a known difference."""
        layer = tf.keras.layers.BatchNormalization
        # In Keras 2 the base class of this and of SyncBatchNormalization has the method.
        owner = next(cls for cls in layer.__mro__ if "call" in vars(cls))
        original = owner.call

        @functools.wraps(original)
        def call(this: Any, inputs: Any, training: Any = None, **options: Any) -> Any:
            if tf.is_tensor(training) or training:
                self._changed.add(NORMALIZED, self.place(this))
            return original(this, inputs, training=False, **options)

        owner.call = tf.autograph.experimental.do_not_convert(call)

    def here(self) -> str:
        """The layer that is computing and the line that made it, or else the line of the script that is running."""
        owners = (frame.f_locals.get("self") for frame in frames() if frame.f_code.co_name in {"call", "tf__call"})
        layer = next((one for one in owners if isinstance(one, tf.keras.layers.Layer)), None)
        return self._lines.here() if layer is None else self.place(layer)

    def place(self, layer: Any) -> str:
        """The line that made a layer, and its name."""
        return f"{self._made.get(layer, '')} {layer.name}"
