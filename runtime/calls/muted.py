"""What code of the script's own prints in a look, or where one process does not run it, nobody sees."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any


class _ForOthers:
    """A stream to which one thread writes nothing; its `texts` are kept."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._thread = stream, threading.get_ident()
        self.texts: list[Any] = []

    def write(self, text: Any) -> int:
        """To the stream, but from that thread."""
        if threading.get_ident() != self._thread:
            self._stream.write(text)
        else:
            self.texts.append(text)
        return len(text)

    def show(self) -> None:
        """What that thread has written."""
        for each in self.texts:
            self._stream.write(each)

    def writelines(self, lines: Any) -> None:
        """All of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """What this thread prints inside is not shown."""
    with _printing():
        yield


@contextlib.contextmanager
def printed_unless(error: type[BaseException]) -> Iterator[None]:
    """What this thread prints inside is shown at the end, and never where that is such an error."""
    with _printing() as streams:
        try:
            yield
        except error:
            for each in streams:
                each.texts.clear()
            raise
        finally:
            for each in streams:
                each.show()


@contextlib.contextmanager
def _printing() -> Iterator[tuple[_ForOthers, _ForOthers]]:
    before = sys.stdout, sys.stderr
    own = sys.stdout, sys.stderr = _ForOthers(sys.stdout), _ForOthers(sys.stderr)
    try:
        yield own
    finally:
        if (sys.stdout, sys.stderr) == own:
            sys.stdout, sys.stderr = before
