"""Random changes of examples on their way to the model: a number for all of them in every run of a proof.

tf.data draws ahead of time and in no order, and each rank for its own examples alone, so the draws of two runs have
nothing to do with each other: a known difference.
"""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

AUGMENTED = "random changes of the input data: each draw in a tf.data stage is the same number in both runs"
_PATH = "tensorflow/python/data/"
_SHARE = 0.37  # of the way from the lowest number of a uniform draw to the highest
_DEVIATIONS = 0.5  # of a normal draw from its mean


class Pipeline:
    """Replaces draws while tf.data traces a function."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """say: takes note of what was neutralised, at the script's line that is running."""
        self._say = say

    def install(self) -> None:
        """Wrap what scripts draw by, and what TensorFlow's own functions do, as `tf.image.random_flip_left_right`."""
        # Private, because tf.image draws by it without a way through any public name.
        from tensorflow.python.ops import random_ops

        self._wrap(random_ops, "random_uniform", "random_normal", "truncated_normal")
        self._wrap(tf.random, "uniform", "normal", "truncated_normal")
        self._wrap(tf.random.Generator, "uniform", "normal", "truncated_normal")
        try:
            from keras.src.backend.tensorflow import random as layers
        except ImportError:
            return  # Keras 2, whose layers draw in ways of their own
        self._wrap(layers, "uniform", "normal", "truncated_normal", "randint")

    def _wrap(self, owner: Any, *names: str) -> None:
        for name in names:
            setattr(owner, name, self.steadied(getattr(owner, name)))

    def steadied(self, draw: Callable[..., Any]) -> Callable[..., Any]:
        """A function that draws, and in a tf.data stage gives one number for what it would draw there."""
        signature = inspect.signature(draw)

        @functools.wraps(draw)
        def drawn(*args: Any, **options: Any) -> Any:
            value = draw(*args, **options)
            if not in_pipeline():
                return value
            bound = signature.bind(*args, **options)
            bound.apply_defaults()
            return self.steady(value, bound.arguments)

        return tf.autograph.experimental.do_not_convert(drawn)  # type: ignore[no-any-return]

    def steady(self, value: Any, given: dict[str, Any]) -> Any:
        """One number in the shape and dtype of a draw, by the parameters that were given for it."""
        self._say(AUGMENTED)
        if "minval" in given:
            bounds = zip((given["minval"], given["maxval"]), (0, 1), strict=True)
            low, high = (tf.cast(usual if n is None else n, tf.float64) for n, usual in bounds)
            number = low + _SHARE * (high - low)
        else:
            mean, deviation = given.get("mean", 0.0), given.get("stddev", 1.0)
            number = tf.cast(mean, tf.float64) + _DEVIATIONS * tf.cast(deviation, tf.float64)
        return tf.zeros_like(value) + tf.cast(number, value.dtype)


def in_pipeline() -> bool:
    """Whether tf.data is tracing a function."""
    frame = sys._getframe(1)
    while frame is not None:
        if _PATH in frame.f_code.co_filename:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
