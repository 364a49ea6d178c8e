"""Our own code inside the user's traced functions."""

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

_F = TypeVar("_F", bound=Callable[..., Any])


def as_written(function: _F) -> _F:
    """Keep AutoGraph from compiling our code again in every function that is traced with it."""
    converted: _F = tf.autograph.experimental.do_not_convert(function)
    return converted
