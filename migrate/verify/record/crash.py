"""The exception that ended a process, as it left the script: written by the process itself, into its folder."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

CRASH = "crash.json"


@dataclass(frozen=True)
class Crash:
    """kind: the exception's class. message: its text, of several lines perhaps. line: of the script's text, the
    innermost that was running; 0 where none was. function: in which, empty outside of any. follows: it only says that
    another rank has failed, or has ended. moment: seconds of a clock that all processes of the machine share.
    traceback: all frames. short: those of the user's own files, and the error.
    """

    kind: str
    message: str
    line: int
    function: str
    follows: bool
    moment: float
    traceback: str
    short: str


def write_crash(folder: Path, crash: Crash) -> None:
    """Write it in one piece: the process may be ended at any time now."""
    part = folder / f"{CRASH}.part"
    part.write_text(json.dumps(dataclasses.asdict(crash)), "utf-8")
    os.replace(part, folder / CRASH)


def read_crash(folder: Path) -> Crash | None:
    """What `write_crash` wrote; None for a process that did not end by an exception."""
    file = folder / CRASH
    return Crash(**json.loads(file.read_text("utf-8"))) if file.exists() else None
