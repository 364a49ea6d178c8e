"""What draws, and normalises by the batch at hand, while a tape records: named, and left as it is in life."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..record import DRAWN_IN_LIFE, NORMALIZED_IN_LIFE
from .layers import Layers
from .notes import Notes

# TensorFlow's generated functions, through which dropout, noise and a script's own draws come in every version.
_DRAWING = {
    "gen_random_ops": (
        *("multinomial", "parameterized_truncated_normal", "random_gamma", "random_poisson_v2", "random_shuffle"),
        *("random_standard_normal", "random_uniform", "random_uniform_int", "truncated_normal"),
    ),
    "gen_stateless_random_ops_v2": (
        *("stateless_random_normal_v2", "stateless_random_uniform_v2", "stateless_random_uniform_int_v2"),
        *("stateless_random_uniform_full_int_v2", "stateless_truncated_normal_v2"),
    ),
}


class Life:
    """Notes them in a process of one, where the runtime has no part in them."""

    def __init__(self, layers: Layers, is_recording: Callable[[], bool]) -> None:
        self.found = Notes()
        self._layers = layers
        self._is_recording = is_recording

    def install(self) -> None:
        """Watch from now on."""
        for module, names in _DRAWING.items():
            held = importlib.import_module(f"tensorflow.python.ops.{module}")
            for name in names:
                setattr(held, name, self._drawing(getattr(held, name)))
        layer = tf.keras.layers.BatchNormalization
        owner = next(cls for cls in layer.__mro__ if "call" in vars(cls))
        owner.call = self._normalizing(owner.call)

    def _drawing(self, draw: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(draw)
        def drawn(*args: Any, **options: Any) -> Any:
            if self._is_recording():
                self.found.add(DRAWN_IN_LIFE, self._layers.here())
            return draw(*args, **options)

        return drawn

    def _normalizing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def normalized(this: Any, inputs: Any, training: Any = None, **options: Any) -> Any:
            if (tf.is_tensor(training) or training) and self._is_recording():
                self.found.add(NORMALIZED_IN_LIFE, self._layers.place(this))
            return call(this, inputs, training=training, **options)

        return tf.autograph.experimental.do_not_convert(normalized)  # type: ignore[no-any-return]
