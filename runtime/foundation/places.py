"""Numbers that all ranks give to the same call, for what is keyed by it and for what is said once about it."""

import collections
import functools
import sys
import threading


class Ordinals:
    """How often each key has come, counted from 0: ranks run the same program, so the numbers agree."""

    def __init__(self) -> None:
        self._counts: collections.Counter[str] = collections.Counter()
        self._lock = threading.Lock()

    def next(self, key: str) -> int:
        """The number of this coming of `key`."""
        with self._lock:
            number = self._counts[key]
            self._counts[key] += 1
        return number


@functools.cache
def say_once(message: str) -> None:
    """Tell the user on stderr, the first time only. The message holds the place that it is about."""
    print(f"tfdp: {message}", file=sys.stderr, flush=True)
