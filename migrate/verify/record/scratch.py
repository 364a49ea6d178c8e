"""A tree that shows the files of the working directory, and of the script's, and keeps what is written to itself.

It has the shape of the real one, from the root: so paths through `..`, and from the script's own `__file__`, lead to
what they lead to in life.
"""

import os
import shutil
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

MOST_ENTRIES = 2000
# Of the folder above, where a script may find `../data`, and write `../out`.
SIBLING_ENTRIES = 200
WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC


def real_path(path: str) -> Path:
    """A script's path without links in its folder; its name may be one."""
    return Path(path).parent.resolve() / Path(path).name


def scratch_place(root: Path, path: Path) -> Path:
    """Where the tree under `root` shows `path`."""
    return root.joinpath(*path.parts[1:])


def show(root: Path, script: Path, folders: Iterable[Path]) -> None:
    """Make the tree: `folders`, which are absolute and have no links in them, and their siblings and parents.

    script: shown as a copy, whose real path is in the tree.
    """
    shown = list(dict.fromkeys(folders))
    # All at first: where a link to a real folder stood, what is made would be made in that.
    for folder in shown:
        scratch_place(root, folder).mkdir(parents=True, exist_ok=True)
    for folder in shown:
        mirror(folder, scratch_place(root, folder))
    # What is to be written in comes before what is only linked: a link made first would stay.
    for sibling in _siblings(shown):
        if len(_entries(sibling)) < SIBLING_ENTRIES:
            mirror(sibling, scratch_place(root, sibling), SIBLING_ENTRIES)
    for above in dict.fromkeys(one for folder in shown for one in folder.parents):
        _link(above, scratch_place(root, above), root)
    copy = scratch_place(root, script)
    if copy.is_symlink() and script.is_file():
        copy.unlink()
        shutil.copy2(script, copy)


def _siblings(folders: Iterable[Path]) -> list[Path]:
    """The folders that these lie in, the root left out."""
    return list(dict.fromkeys(folder.parent for folder in folders if len(folder.parents) > 1))


def _link(origin: Path, target: Path, root: Path) -> None:
    for entry in islice(_entries(origin), MOST_ENTRIES):
        if not os.path.lexists(target / entry.name) and not root.is_relative_to(entry.path):
            (target / entry.name).symlink_to(entry.path)


def mirror(origin: Path, scratch: Path, room: int | None = None) -> None:
    """Make directories like those of `origin`, with links to its files.

    Real directories, so that files made in them land in `scratch`. Hidden directories, and those for whose entries
    there is no room any more, are links as a whole. room: how many entries to make, `MOST_ENTRIES` without it; those of
    `origin` itself are always made.
    """
    room = MOST_ENTRIES if room is None else room
    pending = [(origin, scratch)]
    while pending:
        source, target = pending.pop(0)
        if target.is_symlink():
            continue  # shown as a whole already
        entries = _entries(source)
        room -= len(entries)
        if room < 0 and source != origin and not target.exists():
            target.symlink_to(source)
            continue
        target.mkdir(exist_ok=True)
        for entry in entries:
            shown = target / entry.name
            plain = entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
            if plain and room > 0 and not scratch.is_relative_to(entry.path):
                pending.append((Path(entry.path), shown))
            elif not os.path.lexists(shown):
                shown.symlink_to(entry.path)


def protect(scratch: Path) -> None:
    """From now on, opening a linked file of `scratch` for writing from Python writes a copy of it.

    What native code writes past Python is for those who watch it (`_effects`), and safe by itself where that code
    renames a finished file into place, as TensorFlow's checkpoints do.
    """
    root = os.path.realpath(scratch)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], (str, bytes)):
            return
        path, mode, flags = arguments
        writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool((flags or 0) & WRITING)
        if writes:
            own_copy(os.path.abspath(os.fsdecode(path)), root)

    sys.addaudithook(watch)


def own_copy(path: str, root: str) -> None:
    """Exchange a link in the tree for a copy of its file, before something writes to it."""
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
    except OSError:  # not permitted, or gone meanwhile
        return []
