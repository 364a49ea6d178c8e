"""Which file is being looked at, on the last line of a terminal, while there are many."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping
from typing import TextIO

from .streams import printable

_EVERY_SECONDS = 0.1


class Progress:
    """A line that is overwritten; nothing at all where stderr is no terminal."""

    def __init__(self, stream: TextIO | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._wanted = self._stream is not None and self._stream.isatty() and environ.get("TERM") != "dumb"
        self._count, self._shown, self._next = 0, False, time.monotonic() + _EVERY_SECONDS

    def at(self, path: str) -> None:
        """The next file begins."""
        self._count += 1
        if not self._wanted or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_SECONDS
        width = shutil.get_terminal_size().columns - 1
        self._write(f"\r\x1b[K{f'{self._count}: {printable(path)}'[:width]}")
        self._shown = True

    def clear(self) -> None:
        """Make room for what is to be said."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
