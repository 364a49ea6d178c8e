"""Objects of a class of Keras', told of when they are made."""

import functools
import inspect
from collections.abc import Callable
from typing import Any


def watch(cls: type, tell: Callable[[Any], None]) -> None:
    """From now on, call `tell` with each object of `cls` that its constructor has made."""
    start = cls.__init__  # type: ignore[misc]

    @functools.wraps(start)
    def __init__(this: Any, *args: Any, **options: Any) -> None:  # noqa: N807
        start(this, *args, **options)
        tell(this)

    # Keras binds the arguments of a layer without a constructor of its own by what `inspect` says of this one.
    __init__.__signature__ = inspect.signature(start)  # type: ignore[attr-defined]
    cls.__init__ = __init__  # type: ignore[misc]
