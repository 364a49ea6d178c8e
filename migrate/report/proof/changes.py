"""The change from one text to another as rows of a table, with the numbers of the lines on both sides."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass

_CONTEXT = 3


@dataclass(frozen=True)
class Row:
    """sign: `-`, `+`, a space for a line that stays, `…` where lines that stay are left out. Lines count from 1."""

    sign: str
    old: int | None
    new: int | None
    text: str


def rows(before: bytes, after: bytes) -> Iterator[Row]:
    """What changes, with a few lines around; nothing where the texts are equal."""
    old, new = _lines(before), _lines(after)
    groups = list(difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT))
    for number, group in enumerate(groups):
        if number:
            yield Row("…", None, None, "")
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (Row(" ", i + 1, j + 1, old[i]) for i, j in zip(range(a, b), range(c, d), strict=True))
                continue
            yield from (Row("-", i + 1, None, old[i]) for i in range(a, b))
            yield from (Row("+", None, j + 1, new[j]) for j in range(c, d))


def text(source: bytes) -> str:
    """A source file's text, whatever its encoding."""
    try:
        return importlib.util.decode_source(source)
    except (SyntaxError, UnicodeDecodeError):
        return source.decode("utf-8", "replace")


def _lines(source: bytes) -> list[str]:
    # Not `splitlines`: an editor does not count a line for a form feed.
    return text(source).removesuffix("\n").split("\n")
