"""Lines of a rank's stderr that may be its last words: shown a moment later if they are not."""

import sys
from collections.abc import Callable, Sequence

from . import tracebacks

# A traceback that a script prints and goes on after is shown this much later.
_SECONDS = 2.0
_MOST_BYTES = 2**21


class Held:
    """Holds back what comes from the begin of a traceback on, until the rank has ended or goes on."""

    def __init__(self, ending: Callable[[], bool]) -> None:
        """`ending` says whether the job is about to end: then nothing is let go any more."""
        self._ending = ending
        self.lines: list[bytes] = []
        self._bytes = 0
        self.due: float | None = None

    def feed(self, lines: Sequence[bytes], now: float) -> list[bytes]:
        """The lines to show at once."""
        if self.due is None:
            begin = next((at for at, line in enumerate(lines) if tracebacks.may_begin(line)), len(lines))
            if begin == len(lines):
                return list(lines)
            self.due = now + _SECONDS
            self._hold(lines[begin:])
            return list(lines[:begin])
        self._hold(lines)
        return self.release() if self._bytes > _MOST_BYTES else []

    def look(self, now: float) -> list[bytes]:
        """The lines to show because the rank has gone on."""
        if self.due is None or now < self.due:
            return []
        if self._ending():
            self.due = now + _SECONDS
            return []
        return self.release()

    def release(self) -> list[bytes]:
        """All that is held."""
        lines, self.lines, self.due, self._bytes = self.lines, [], None, 0
        return lines

    def _hold(self, lines: Sequence[bytes]) -> None:
        self.lines += lines
        self._bytes += sum(sys.getsizeof(line) for line in lines)
