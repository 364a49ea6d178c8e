"""What the PATH arguments mean: which files, each once, in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .report.outcome import Failure

STDIN = "-"
_PYTHON = frozenset({".py", ".pyw", ".pyi", ".pyc", ".pyz"})
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


class NotAScript(Exception):  # noqa: N818 - names what was given
    """A path leads to something else than a Python script; the message is a sentence that names it."""


def no_script(path: str) -> str:
    """Why what is there is no Python script, and what to do, by its name; empty for a script, or if nothing is there.

    A name without an ending may be a script's, and so is one with more endings: `train.py.orig`.
    """
    endings = [ending.lower() for ending in Path(path).suffixes]
    if os.path.isdir(path):
        return f"{path} is a directory: name the script in it"
    if not os.path.exists(path) or not endings or _PYTHON & set(endings):
        return ""
    if endings[-1] == ".ipynb":
        return f"{path} is a notebook: make a script of it first, `jupyter nbconvert --to script {path}`"
    return f"{path} is not a Python script, as its ending {endings[-1]} says: name a .py file"


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
