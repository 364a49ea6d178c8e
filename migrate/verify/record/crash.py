"""The exception that ended a process, as it left the script: written by the process itself, into its folder."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CRASH = "crash.json"
# What TensorFlow and Keras say around an error: where, and not what.
_AROUND = re.compile(
    r"in user code:|Graph execution error|Detected at node|Node: |\[\[|Traceback \(|<stack traces|\d+ root error"
    r"|Exception encountered when calling|.*Error encountered:$"
)
_FRAME = re.compile(r'File "[^"]+", line \d+')
_STATUS = re.compile(r"(?:\(\d+\) )?[A-Z_]+: +(?=[A-Z]\w*(?:Error|Exception): )")
_NAMED = re.compile(r"(?:\w+\.)*(\w+(?:Error|Exception): )")
_STYLE = re.compile(r"\x1b\[[\d;]*m")


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


def one_line(kind: str, message: str) -> str:
    """An error in a line: of what TensorFlow says of a graph, the error itself, without the places around it."""
    told = [line for line in _without_frames(_STYLE.sub("", message)) if not _AROUND.match(line)]
    said = _STATUS.sub("", next(iter([*told, message.strip().partition("\n")[0]])))
    named = _NAMED.match(said)
    return f"{named[1]}{said[named.end() :]}" if named else f"{kind}: {said}".removesuffix(": ")


def _without_frames(message: str) -> Iterator[str]:
    """The lines of a message, none that is a frame of a traceback, or of the source below one."""
    frame: int | None = None
    for line in message.splitlines():
        text = line.strip()
        depth = len(line) - len(line.lstrip())
        if _FRAME.match(text):
            frame = depth
        elif text and (frame is None or depth <= frame):
            frame = None
            yield text
