"""A gradient tape around code of the script's own that runs eagerly records the call as one operation: what the code
asks of that tape inside, to watch a tensor or to record nothing for a while, would come to nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..framework import transparent
from . import guard

_INSIDE = "_tfdp_entered_inside"  # of a tape: of which guard


def watch_tapes_around() -> None:
    """From now on such calls are not divided."""
    tape = tf.GradientTape
    begin = tape.__enter__

    @functools.wraps(begin)
    def begun(self: Any) -> Any:
        vars(self)[_INSIDE] = id(guard.now())
        return begin(self)

    tape.__enter__ = transparent(begun)
    for name in ("reset", "stop_recording", "watch", "watched_variables"):
        setattr(tape, name, _asked(getattr(tape, name)))


def _asked(original: Callable[..., Any]) -> Any:
    @functools.wraps(original)
    def asked(self: Any, *arguments: Any, **options: Any) -> Any:
        here = guard.now()
        if guard.is_eager() and vars(self).get(_INSIDE) != id(here):
            here.refuse(f"asks {original.__name__} of a gradient tape around it")  # type: ignore[union-attr]
        return original(self, *arguments, **options)

    return transparent(asked)
