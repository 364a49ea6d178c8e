"""Our own code inside the user's traced functions."""

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

_F = TypeVar("_F", bound=Callable[..., Any])


def as_written(function: _F) -> _F:
    """Keep AutoGraph from compiling our code again in every function that is traced with it."""
    converted: _F = tf.autograph.experimental.do_not_convert(function)
    return converted


def leave_ours() -> None:
    """From now on AutoGraph compiles nothing of this package, whoever calls it: the method of a user's class, in whose
    place one of ours stands, would be compiled with all that it calls. Its rules are private."""
    from tensorflow.python.autograph.core import config

    ours = config.DoNotConvert(__name__.partition(".")[0])
    config.CONVERSION_RULES = (ours, *config.CONVERSION_RULES)


def transparent(function: _F) -> _F:
    """Our own code around the user's, or around the framework's, which calls the user's: AutoGraph leaves ours as it
    is, and goes on with what that calls.

    What is public, `do_not_convert`, leaves both as they are: the function of a dataset's stage, or of a gradient.
    """
    from tensorflow.python.autograph.impl import api

    marked: _F = api.autograph_artifact(function)
    return marked
