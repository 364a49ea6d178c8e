"""A working directory that shows the files of another one and keeps what is written to itself."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

MOST_ENTRIES = 2000
WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC


def mirror(origin: Path, scratch: Path) -> None:
    """Make directories like those of `origin`, with links to its files.

    Real directories, so that files made in them land in `scratch`. Hidden directories, and all that comes after
    `MOST_ENTRIES` entries, are links as a whole.
    """
    room = MOST_ENTRIES
    pending = [(origin, scratch)]
    while pending:
        source, target = pending.pop(0)
        target.mkdir(exist_ok=True)
        for entry in _entries(source):
            room -= 1
            place = target / entry.name
            plain = entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
            if plain and room > 0 and not scratch.is_relative_to(entry.path):
                pending.append((Path(entry.path), place))
            elif not place.exists():
                place.symlink_to(entry.path)


def protect(scratch: Path) -> None:
    """From now on, opening a linked file of `scratch` for writing from Python writes a copy of it.

    Files that native code writes past Python are safe only where that code renames a finished file into place, as
    TensorFlow does; HDF5 does not.
    """
    root = os.path.realpath(scratch)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], (str, bytes)):
            return
        path, mode, flags = arguments
        writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool((flags or 0) & WRITING)
        if writes:
            _own_copy(os.path.abspath(os.fsdecode(path)), root)

    sys.addaudithook(watch)


def _own_copy(path: str, root: str) -> None:
    if not os.path.islink(path) or os.path.commonpath([root, path]) != root:
        return
    target = os.path.realpath(path)
    if os.path.isfile(target):
        os.unlink(path)
        shutil.copy2(target, path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except PermissionError:
        return []
