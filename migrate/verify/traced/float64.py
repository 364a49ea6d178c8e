"""A script that computes in float64: Keras' default dtype, and what TensorFlow makes of Python's floats."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# Functions whose results are float32 where no dtype is given, whatever their arguments are.
_MAKING = ("zeros", "ones", "eye", "one_hot")
_COMPUTING = ("abs", "cos", "exp", "log", "pow", "rsqrt", "sigmoid", "sin", "sqrt", "square", "tanh")
_DRAWING = ("normal", "truncated_normal", "uniform")


def install() -> None:
    """Before the script runs, and before draws are watched."""
    tf.keras.backend.set_floatx("float64")
    for name in _MAKING:
        setattr(tf, name, _wide(getattr(tf, name)))
    for name in _DRAWING:
        for owner in (tf.random, tf.random.Generator):
            setattr(owner, name, _wide(getattr(owner, name)))
    for name in ("constant", "convert_to_tensor"):
        setattr(tf, name, _wide(getattr(tf, name), only_floats=True))
    _convert_wide()
    for owner in (tf, tf.math):
        for name in _COMPUTING:
            if hasattr(owner, name):
                setattr(owner, name, _computing(getattr(owner, name)))
    fill = tf.fill

    def filled(dims: Any, value: Any, *rest: Any, **options: Any) -> Any:
        return fill(dims, tf.constant(value), *rest, **options)

    tf.fill = tf.autograph.experimental.do_not_convert(functools.wraps(fill)(filled))


def _convert_wide() -> None:
    """What TensorFlow itself makes a tensor of: what a `tf.function` gives back, and a variable's first value. Nothing
    public stands there."""
    from tensorflow.python.framework import constant_op

    constant_op.constant = _wide(constant_op.constant, only_floats=True)


def python_floats(value: Any) -> bool:
    """Whether TensorFlow would make float32 of it: a float of Python, or lists and tuples of such."""
    if isinstance(value, (list, tuple)):
        return any(python_floats(each) for each in value)
    return type(value) is float


def _computing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes Python's floats as float64, where they come first."""

    @functools.wraps(function)
    def computed(*args: Any, **options: Any) -> Any:
        if args and python_floats(args[0]):
            args = (tf.constant(args[0], tf.float64), *args[1:])
        return function(*args, **options)

    return tf.autograph.experimental.do_not_convert(computed)  # type: ignore[no-any-return]


def _wide(function: Callable[..., Any], *, only_floats: bool = False) -> Callable[..., Any]:
    """A function with a `dtype`, which is float64 where none is given, or none is and its first argument is floats."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def made(*args: Any, **options: Any) -> Any:
        given = signature.bind(*args, **options).arguments
        floats = not only_floats or python_floats(next(iter(given.values())))
        if floats and given.get("dtype") is None and given.get("dtype_hint") is None:
            options["dtype"] = tf.float64
        return function(*args, **options)

    return tf.autograph.experimental.do_not_convert(made)  # type: ignore[no-any-return]
