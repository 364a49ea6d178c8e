"""What is drawn inside a divided call: its rows of what one process draws.

TensorFlow's generated functions for random operations are the one place that dropout, noise layers, `tf.random`, its
generators and Keras' all come through; nothing public stands there. Each of those in `_BY_SHAPE` takes a shape first,
so that the whole can be drawn and rows be taken. Others draw by what they are given: a call with one is not divided.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from . import guard, sight
from .sight import Draw

_OPS = "tensorflow.python.ops."
_BY_SHAPE = {
    "gen_random_ops": ("random_standard_normal", "truncated_normal", "random_uniform", "random_uniform_int"),
    "gen_stateless_random_ops_v2": (
        "stateless_random_normal_v2",
        "stateless_random_uniform_v2",
        "stateless_random_uniform_int_v2",
        "stateless_random_uniform_full_int_v2",
        "stateless_truncated_normal_v2",
    ),
}
# With a state, so that even a look at them would change what comes. The stateless ones give the same again.
_OTHERWISE = {
    "gen_random_ops": (
        "multinomial",
        "parameterized_truncated_normal",
        "random_gamma",
        "random_poisson_v2",
        "random_shuffle",
    ),
    "gen_stateful_random_ops": ("non_deterministic_ints", "stateful_random_binomial"),
}
_SHAPE = "shape"
_SEED = (7, 11)  # of a look, whose numbers nobody sees


def watch_draws() -> None:
    """From now on draws inside calls go by what those see of the batch."""
    for module, names in _BY_SHAPE.items():
        for name in names:
            _replace(module, name, _by_shape)
    for module, names in _OTHERWISE.items():
        for name in names:
            _replace(module, name, _otherwise)
    _watch_seeds()


def _watch_seeds() -> None:
    """The seeds of a draw that runs eagerly are those of one that does."""
    from tensorflow.python.framework import random_seed

    original = random_seed.get_seed

    @functools.wraps(original)
    def get_seed(op_seed: Any) -> Any:
        if not guard.is_eager():
            return original(op_seed)
        with tf.init_scope():
            return original(op_seed)

    random_seed.get_seed = get_seed


def _replace(module: str, name: str, made: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
    held = importlib.import_module(_OPS + module)
    setattr(held, name, made(name, getattr(held, name)))


def _by_shape(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    has_state = not name.startswith("stateless")

    @functools.wraps(original)
    def draw(*arguments: Any, **options: Any) -> Any:
        if sight.now() is None:
            return original(*arguments, **options)
        if _SHAPE in options:
            options = dict(options)
            given, arguments = options.pop(_SHAPE), (None, *arguments)
        else:
            given = arguments[0]

        def make(shape: Any) -> Any:
            return original(shape, *arguments[1:], **options)

        def imitate(shape: Any) -> Any:
            return _stateless(name, shape, arguments[1:], options) if has_state else make(shape)

        return guard.drawn(Draw(name, given, make, imitate, has_state, (arguments[1:], options)))

    return draw


def _stateless(name: str, shape: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What a draw with a state may give, without a change of that state."""
    with sight.seen(None):
        if name == "random_uniform_int":
            low, high = (*arguments, *(options[key] for key in ("minval", "maxval")[len(arguments) :]))[:2]
            return tf.random.stateless_uniform(shape, _SEED, low, high, tf.convert_to_tensor(low).dtype)
        dtype = tf.as_dtype(arguments[0] if arguments else options["dtype"])
        drawn = tf.random.stateless_uniform if name == "random_uniform" else tf.random.stateless_truncated_normal
        return drawn(shape, _SEED, dtype=dtype)


def _otherwise(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def draw(*arguments: Any, **options: Any) -> Any:
        here = sight.now()
        if here is not None:
            here.refuse(f"draws by {name}")
        return original(*arguments, **options)

    return draw
