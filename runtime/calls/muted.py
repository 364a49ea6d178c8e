"""What code of the script's own prints in a look, or where one process does not run it, nobody sees."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any


class _ForOthers:
    """A stream to which one thread writes nothing."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._thread = stream, threading.get_ident()

    def write(self, text: Any) -> int:
        """To the stream, but from that thread."""
        if threading.get_ident() != self._thread:
            self._stream.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """All of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """What this thread prints inside is not shown."""
    before = sys.stdout, sys.stderr
    own = sys.stdout, sys.stderr = _ForOthers(sys.stdout), _ForOthers(sys.stderr)
    try:
        yield
    finally:
        if (sys.stdout, sys.stderr) == own:
            sys.stdout, sys.stderr = before
