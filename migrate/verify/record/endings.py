"""The end of what a run said, as a person wants to read it: without what is the same at every start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_MOST = 25
# The launcher's marks in front of a line.
_MARK = r"^(?:\[\d+\] ?|tfdp: )?"
# TensorFlow says these things whenever it is imported, before a log level holds.
_AT_START = re.compile(
    _MARK + r"(?:WARNING: All log messages before absl::InitializeLog|[IW]\d{4} [\d:.]+ +\d+ \S+\.cc:\d+\])"
)
_STYLE = re.compile(r"\x1b\[[\d;]*m")
# How the proof's own process calls the script. Its other frames are kept: they may be at fault.
_OWN_FRAME = re.compile(_MARK + r'  File "(?:<string>", line 1, in <module>|[^"]*/verify/traced/child\.py")')
_UNDER_FRAME = re.compile(_MARK + r"    ")


def last_words(output: str) -> str:
    """The last lines of stdout and stderr together."""
    lines = (_shown(line) for line in output.split("\n"))
    said = [line for line in lines if not _AT_START.match(line)]
    return "\n".join([*_without_own(said)][-_MOST:]).rstrip("\n")


def _shown(line: str) -> str:
    """What a terminal leaves of a line that is written over, as progress bars are."""
    parts = [part for part in re.split(r"[\r\x08]+", _STYLE.sub("", line)) if part.strip()]
    return parts[-1] if parts else ""


def _without_own(lines: Sequence[str]) -> Iterator[str]:
    own = False
    for line in lines:
        own = bool(_OWN_FRAME.match(line)) or (own and bool(_UNDER_FRAME.match(line)))
        if not own:
            yield line
