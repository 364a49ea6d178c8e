"""What the PATH arguments mean: which files, each once, in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .report.outcome import Failure

STDIN = "-"
_SKIPPED = frozenset({"venv", "node_modules", "__pycache__"})


@dataclass(frozen=True)
class Input:
    """A file to look at, or standard input. `named`: the user wrote this path itself, not a directory above it."""

    path: str
    named: bool


@dataclass(frozen=True)
class Unusable:
    """A PATH that leads to no file."""

    path: str
    failure: Failure


def expand(paths: Iterable[str]) -> Iterator[Input | Unusable]:
    """Files in the order of the arguments, those of a directory sorted; one that is reached twice comes once."""
    seen: set[str] = set()
    for path in paths:
        for found in _below(path) if path != STDIN and os.path.isdir(path) else [Input(path, named=True)]:
            identity = STDIN if found.path == STDIN else os.path.realpath(found.path)
            if isinstance(found, Unusable):
                yield found
            elif identity not in seen:
                seen.add(identity)
                yield found


def _below(folder: str) -> Iterator[Input | Unusable]:
    problems: list[Unusable] = []

    def unreadable(error: OSError) -> None:
        problems.append(Unusable(str(error.filename), Failure(f"cannot list the directory: {error.strerror}")))

    empty = True
    for where, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not _skipped(where, name))
        for name in sorted(names):
            if _is_source(os.path.join(where, name)):
                empty = False
                yield Input(os.path.join(where, name), named=False)
    yield from problems
    if empty and not problems:
        yield Unusable(folder, Failure("no Python file in this directory; name the script or its folder"))


def _skipped(where: str, name: str) -> bool:
    # `env` may be a reinforcement-learning environment: what makes a virtual environment is its pyvenv.cfg.
    return name.startswith(".") or name in _SKIPPED or os.path.exists(os.path.join(where, name, "pyvenv.cfg"))


def _is_source(path: str) -> bool:
    # A link's target is found by itself if it is below the directory, and is not ours to change if it is not.
    name = os.path.basename(path)
    return name.endswith(".py") and not name.startswith(".") and not os.path.islink(path) and os.path.isfile(path)
