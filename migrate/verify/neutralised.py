"""What computes otherwise in both runs of a proof than in life, with the lines of the script that ask for it."""

import difflib
from collections.abc import Callable, Sequence

from tfdp.migrate.verify.trace import Note

NORMALIZED = "batch statistics: BatchNormalization uses its moving ones, in the reference and on every rank"
SHUFFLED = "order: shuffle keeps the order of the records that a rank has"
DRAWN = "draws in the model: each rank takes its rows of what the reference draws"
FILES = (
    "whole files (by='file'): here their records are dealt one by one, so that the other order in life, and what is "
    "left out there, is not compared"
)
SEEDED = "generators: those without a seed start from one of the proof's"


def described(notes: Sequence[Note], reference: bytes, original: bytes) -> tuple[str, ...]:
    """One text for each kind of change, with the lines of the original. A note's site is a line of the reference, then,
    after a space, a name."""
    line = _lines(reference.decode("utf-8", "replace"), original.decode("utf-8", "replace"))
    found: dict[str, set[tuple[int, str]]] = {}
    for note in notes:
        number, _, name = note.site.partition(" ")
        found.setdefault(note.what, set()).add((line(int(number)) if number else 0, name))
    return tuple(": ".join(filter(None, (what, _places(sorted(places))))) for what, places in found.items())


def _places(places: Sequence[tuple[int, str]]) -> str:
    """`line 4, dropout (line 7)`."""
    texts = []
    for number, name in places:
        line = f"line {number}" if number else ""
        texts.append(f"{name} ({line})" if name and line else name or line)
    return ", ".join(filter(None, texts))


def _lines(reference: str, original: str) -> Callable[[int], int]:
    """From a line of the reference to the line of the original that it is, or was made from."""
    matcher = difflib.SequenceMatcher(None, reference.splitlines(), original.splitlines(), autojunk=False)
    lines = {}
    for _, start, end, first, last in matcher.get_opcodes():
        for number in range(start, end):
            lines[number + 1] = min(first + number - start, max(last - 1, first)) + 1
    return lambda number: lines.get(number, number)
