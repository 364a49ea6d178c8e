"""Changes of a text by lines, and where each line of the result comes from."""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import libcst as cst


class NotReadError(Exception):
    """Something of another system is not understood."""


class Place(NamedTuple):
    """Where a line of a text was before: its number, from 1, and by how many columns it stands further left now."""

    line: int
    shift: int = 0


class Taken(NamedTuple):
    """Something of another system that is no longer there: its place in the original, both from 1, and what is said."""

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Single:
    """The one-worker form of a distributed script; `places` has the origin of each of its lines."""

    module: cst.Module
    places: tuple[Place, ...]
    taken: tuple[Taken, ...]


class Span(NamedTuple):
    """A part of a text, from a line and column up to another, and what stands there instead. Lines count from 1,
    columns from 0."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


@dataclass(frozen=True)
class Change:
    """What becomes of a text: lines that go, lines that are moved to the left, or a part that is another.

    dedented: by line the first column and the number of columns that go.
    """

    removed: frozenset[int] = frozenset()
    dedented: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    span: Span | None = None

    def applied(self, text: str, places: Sequence[Place]) -> tuple[str, tuple[Place, ...]]:
        """The changed text, and where its lines come from, if those of the text come from `places`."""
        lines, origins = [], []
        for number, (line, origin) in enumerate(zip(lines_of(text), places, strict=True), 1):
            if number not in self.removed:
                at, count = self.dedented.get(number, (0, 0))
                lines.append(line[:at] + line[at + count :])
                origins.append(origin._replace(shift=origin.shift + count))
        if self.span is not None:
            _replace(lines, origins, self.span)
        return "".join(lines), tuple(origins)


def _replace(lines: list[str], origins: list[Place], span: Span) -> None:
    (first, start), (last, end), text = span
    made = lines_of(lines[first - 1][:start] + text + lines[last - 1][end:])
    origins[first - 1 : last] = [origins[min(first - 1 + n, last - 1)] for n in range(len(made))]
    lines[first - 1 : last] = made


def spliced(text: str, spans: Iterable[Span]) -> str:
    """The text with other words in these places, no two of which overlap."""
    starts = [0, *accumulate(map(len, lines_of(text)))]
    for (first, start), (last, end), words in sorted(spans, reverse=True):
        text = text[: starts[first - 1] + start] + words + text[starts[last - 1] + end :]
    return text


def untouched(text: str) -> tuple[Place, ...]:
    """The places of the lines of a text that nothing has changed."""
    return tuple(Place(number) for number, _ in enumerate(lines_of(text), 1))


def origins(before: str, after: str) -> list[int]:
    """Of each line of a text which line of the one before it stands for, from 1; of one that is new the next."""
    found: list[int] = []
    matcher = difflib.SequenceMatcher(None, lines_of(before), lines_of(after), autojunk=False)
    for _, first, last, begins, stops in matcher.get_opcodes():
        found += [min(first + n, max(first, last - 1)) + 1 for n in range(stops - begins)]
    return found


def dedent(text: str, first: int, last: int, outer: str, inner: str) -> Mapping[int, tuple[int, int]]:
    """For each line of a block how it is moved from one indentation to another; texts over several lines stay."""
    lines, within = lines_of(text), _inside_of_strings(text)
    by = len(outer), len(inner) - len(outer)
    return {n: by for n in range(first, last + 1) if n not in within and lines[n - 1].startswith(inner)}


def lifted(
    text: str, first: tuple[int, int], header: int, body: tuple[int, int], *, end: int, last: int
) -> Change | None:
    """A block in place of its statement, which begins at `first` and goes on to the line `last`: the lines after its
    header up to `end`. None where its first statement, at `body`, does not stand further right, in a line of its own.
    """
    lines = lines_of(text)
    outer, inner = lines[first[0] - 1][: first[1]], lines[body[0] - 1][: body[1]]
    if body[0] <= header or not inner.startswith(outer):
        return None
    gone = frozenset((*range(first[0], header + 1), *range(end + 1, last + 1)))
    return Change(gone, dedent(text, header + 1, end, outer, inner))


def lines_of(text: str) -> list[str]:
    """With their ends."""
    return io.StringIO(text, newline="").readlines()


def _inside_of_strings(text: str) -> set[int]:
    """Lines that begin inside of a string."""
    found: set[int] = set()
    opened: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            opened.append(token.start[0])
        elif name in {"STRING", "FSTRING_END"}:
            start = opened.pop() if name == "FSTRING_END" else token.start[0]
            found |= set(range(start + 1, token.end[0] + 1))
    return found
