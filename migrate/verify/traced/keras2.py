"""Where Keras 2, as part of TensorFlow or as tf_keras, keeps what its layers draw random numbers by."""

import importlib
import sys
from typing import Any

import tensorflow as tf


def generator() -> Any:
    """The class of the generators that layers hold; None in Keras 3."""
    package = tf.keras.layers.Dropout.__module__.partition(".layers.")[0]
    # Keras 2 has no public name for it.
    return getattr(importlib.import_module(f"{package}.backend"), "RandomGenerator", None)


def initialises(generator: Any) -> bool:
    """Whether a generator is an initialiser's: it has no state."""
    return bool(generator._rng_type == generator.RNG_STATELESS)


def images() -> Any:
    """The `tf.image` that layers flip images by: another module than the public one, with the same functions."""
    return sys.modules[tf.keras.layers.RandomFlip.__module__].tf.image
