"""How far the runs of a proof are: the last line of a terminal, or a line now and then in a log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TextIO

_EVERY_SECONDS = 15.0


class Steps:
    """Shows each run's name and step, of how many where that is known. On a terminal one line that is overwritten."""

    def __init__(
        self, steps: int | None, stream: TextIO | None = None, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._steps = steps
        self._stream = sys.stderr if stream is None else stream
        self._overwrites = self._stream is not None and self._stream.isatty() and environ.get("TERM") != "dumb"
        self._run = ""
        self._last = -1
        self._began = self._next = 0.0

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *reason: object) -> None:
        if self._overwrites and self._run:
            self._write("\r\x1b[K")

    def at(self, run: str, step: int) -> None:
        """`run` has done `step` steps. Cheap: may be called many times a second."""
        now = time.monotonic()
        if run != self._run:
            self._run, self._last, self._began, self._next = run, -1, now, now
        if self._stream is None or now < self._next or (step == self._last and not self._overwrites):
            return
        self._last = step
        self._next = now + (0.2 if self._overwrites else _EVERY_SECONDS)
        of = "" if self._steps is None else f" of {self._steps}"
        text = f"{run}: step {step}{of}, {now - self._began:.0f} s"
        self._write(f"\r\x1b[K{text}" if self._overwrites else f"{text}\n")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()
