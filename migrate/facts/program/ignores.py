"""`# tfdp: ignore[TFDP010]` comments: places where the author has decided, and a rule says and changes nothing."""

from __future__ import annotations

import io
import re
import tokenize

import libcst as cst
from libcst.metadata import CodeRange

_COMMENT = re.compile(r"#\s*tfdp:\s*ignore\[\s*([A-Z0-9,\s]+?)\s*\]")


class Ignores:
    """Which codes are ignored on which lines. A comment on a line of its own stands for the next line of code."""

    def __init__(self, source: str) -> None:
        self._codes: dict[int, frozenset[str]] = {}
        if not _COMMENT.search(source):
            return
        waiting: frozenset[str] = frozenset()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                codes = _codes(token.string)
                if token.line[: token.start[1]].strip():
                    self._add(token.start[0], codes)
                else:
                    waiting |= codes
            elif waiting and token.string.strip():
                self._add(token.start[0], waiting)
                waiting = frozenset()

    def _add(self, line: int, codes: frozenset[str]) -> None:
        self._codes[line] = self._codes.get(line, frozenset()) | codes

    def __bool__(self) -> bool:
        return bool(self._codes)

    def cover(self, code: str, lines: range) -> bool:
        """Whether the code is ignored on one of the lines, which count from 1."""
        return any(code in self._codes.get(line, ()) for line in lines)


def lines_of(statement: cst.CSTNode, place: CodeRange) -> range:
    """The lines of a simple statement, or the first one of a compound statement."""
    last = place.start.line if isinstance(statement, cst.BaseCompoundStatement) else place.end.line
    return range(place.start.line, last + 1)


def _codes(comment: str) -> frozenset[str]:
    found = _COMMENT.search(comment)
    return frozenset(re.split(r"[\s,]+", found[1])) if found is not None else frozenset()
