"""Where the lines of a text that ran stand in the file of its name, which may hold another text."""

from __future__ import annotations

import difflib
import functools
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

_ALIKE = 0.5  # the part of a rewritten line that has to be as it was


@dataclass(frozen=True)
class Moved:
    """path: under which the text ran. text: what ran. word: what to call it where a line of it is in no file."""

    path: str
    text: bytes
    word: str

    def place(self, line: int) -> str:
        """A line of the text as its author finds it: `train.py:12`, or by its words where the tool has put it there."""
        if own := self._line(line):
            return f"{self._name}:{own}"
        shown = _lines(self.text)
        words = shown[line - 1].strip() if 0 < line <= len(shown) else ""
        return f"line {line} of {self.word} (`{words}`)"

    def message(self, said: str) -> str:
        """A message with the places that it names in place of those of the text."""
        return re.sub(rf"{re.escape(self.path)}:(\d+)", lambda found: self.place(int(found[1])), said)

    @property
    def _name(self) -> str:
        near = os.path.relpath(self.path)
        return self.path if near.startswith("..") else near

    def _line(self, line: int) -> int | None:
        return self._known.get(line)

    @functools.cached_property
    def _known(self) -> dict[int, int]:
        """The line in the file by the line in the text, both from 1."""
        try:
            there = _lines(Path(self.path).read_bytes())
        except OSError:
            there = []
        ran = _lines(self.text)
        known: dict[int, int] = {}
        for tag, a, b, c, d in difflib.SequenceMatcher(None, there, ran, autojunk=False).get_opcodes():
            if tag == "equal":
                known.update({c + k + 1: a + k + 1 for k in range(b - a)})
            elif tag == "replace":
                known.update(_rewritten(there[a:b], ran[c:d], a, c))
        return known


def _rewritten(old: list[str], new: list[str], a: int, c: int) -> dict[int, int]:
    """Of lines that were changed, those that are still alike: by their numbers, from 1, after `a` and `c` others."""
    found = {}
    for k, line in enumerate(new):
        ratios = [difflib.SequenceMatcher(None, line.strip(), each.strip()).ratio() for each in old]
        best = max(range(len(old)), key=ratios.__getitem__)
        if ratios[best] >= _ALIKE:
            found[c + k + 1] = a + best + 1
    return found


def _lines(source: bytes) -> list[str]:
    try:
        return importlib.util.decode_source(source).split("\n")
    except (SyntaxError, UnicodeDecodeError):
        return source.decode("utf-8", "replace").split("\n")
