"""Functions that XLA compiles in life, without it: it cannot compile the callbacks by which a step is recorded."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..record import COMPILED
from .frames import INSIDE


def leave_out(changed: Callable[[str], None]) -> None:
    """From now on, no `tf.function` of a script is compiled, nor Keras' training. changed: told where one would be.

    What Keras compiles of single operations stays as it is: some are there for XLA alone.
    """
    kind = type(tf.function(lambda: None))
    start = kind.__init__
    signature = inspect.signature(start)

    @functools.wraps(start)
    def __init__(this: Any, *args: Any, **options: Any) -> None:  # noqa: N807
        given = signature.bind(this, *args, **options)
        if given.arguments.get("jit_compile") and _trains(given.arguments["python_function"]):
            given.arguments["jit_compile"] = False
            changed(COMPILED)
        start(*given.args, **given.kwargs)

    kind.__init__ = __init__


def _trains(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    return module.split(".")[0] not in INSIDE or "train" in module
