"""What the script asks of the runtime, written down where it may explain a difference."""

from collections import deque
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ....runtime.foundation import call_site
from ..record import RATE_SCALED, RATE_SCALED_AGAIN, SHARDED, SHARDED_AGAIN, Note

# A result that is handed to the same function again is handed to it at once.
_REMEMBERED = 8


class Notes:
    """Each fact once, in order."""

    def __init__(self) -> None:
        self._found: dict[Note, None] = {}

    def add(self, what: str, site: str | None = None) -> None:
        """Note `what`, for the line of the script that is running or for the given one."""
        self._found[Note(what, call_site() if site is None else site)] = None

    @property
    def all(self) -> tuple[Note, ...]:
        """What was noted."""
        return tuple(self._found)

    def rows(self, local_rows: Callable[..., Any]) -> Callable[..., Any]:
        """`dp.local_rows`, noted."""
        return self._watched(local_rows, SHARDED, SHARDED_AGAIN)

    def rates(self, scale_lr: Callable[..., Any]) -> Callable[..., Any]:
        """`dp.scale_lr`, noted."""
        return self._watched(scale_lr, RATE_SCALED, RATE_SCALED_AGAIN)

    def _watched(self, function: Callable[..., Any], once: str, again: str) -> Callable[..., Any]:
        results: deque[Any] = deque(maxlen=_REMEMBERED)

        def watched(given: Any, *args: Any, **options: Any) -> Any:
            self.add(again if any(given is result for result in results) else once)
            result = function(given, *args, **options)
            results.append(result)
            return result

        return tf.autograph.experimental.do_not_convert(watched)  # type: ignore[no-any-return]
