"""What computes otherwise in both runs of a proof than in life, with the lines of the script that ask for it."""

import difflib
from collections.abc import Callable, Mapping, Sequence

from .trace import Note

NORMALIZED = "batch statistics: BatchNormalization uses its moving ones, in the reference and on every rank"
LOCALLY_NORMALIZED = (
    "batch statistics: BatchNormalization goes by the whole batch here, where in life it goes by each worker's rows "
    '(batch_norm="local"), which is another model than one process trains'
)
SHUFFLED = "order: shuffle keeps the order of the records that a rank has"
DRAWN = "draws in the model: each rank takes its rows of what the reference draws"
COMPILED = "XLA: nothing is compiled by it (jit_compile) in either run, because what it compiles cannot be recorded"
FILES = (
    "whole files (by='file'): here their records are sharded one by one, so that the other order in life, and what is "
    "left out there, is not compared"
)
# What sharded calls leave as it is in life.
DRAWN_IN_LIFE = "draws, each worker its rows of the whole"
NORMALIZED_IN_LIFE = "BatchNormalization, by the whole batch"
# Of the layers that one line makes, as a ready-made network does.
MOST_NAMES = 4
SEEDED = "generators: those without a seed start from one of the proof's"


def described(notes: Sequence[Note], reference: bytes, original: bytes) -> tuple[str, ...]:
    """One text for each kind of change, with the lines of the original. A note's site is a line of the reference, then,
    after a space, a name."""
    line = _lines(reference.decode("utf-8", "replace"), original.decode("utf-8", "replace"))
    found: dict[str, dict[int, dict[str, None]]] = {}
    for note in notes:
        number, _, name = note.site.partition(" ")
        found.setdefault(note.what, {}).setdefault(line(int(number)) if number else 0, {})[name] = None
    return tuple(": ".join(filter(None, (what, _places(places)))) for what, places in found.items())


def _places(places: Mapping[int, Mapping[str, None]]) -> str:
    """`line 4, dropout (line 7)`."""
    texts = []
    for number, given in sorted(places.items()):
        line = f"line {number}" if number else ""
        names = [name for name in given if name]
        if "" in given:
            texts.append(line)
        if names:
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            said = ", ".join(names[:MOST_NAMES]) + more
            texts.append(f"{said} ({line})" if line else said)
    return ", ".join(filter(None, texts))


def _lines(reference: str, original: str) -> Callable[[int], int]:
    """From a line of the reference to the line of the original that it is, or was made from."""
    matcher = difflib.SequenceMatcher(None, reference.splitlines(), original.splitlines(), autojunk=False)
    lines = {}
    for _, start, end, first, last in matcher.get_opcodes():
        for number in range(start, end):
            lines[number + 1] = min(first + number - start, max(last - 1, first)) + 1
    return lambda number: lines.get(number, number)
