"""What `os.scandir` gives, in a form that can be sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any


class Entry(os.PathLike[Any]):
    """An `os.DirEntry`, all of which is known but its `stat`."""

    def __init__(self, entry: os.DirEntry[Any]) -> None:
        self.name, self.path = entry.name, entry.path
        self._inode = entry.inode()
        self._is_link = entry.is_symlink()
        self._kinds = {follow: (_told(entry.is_dir, follow), _told(entry.is_file, follow)) for follow in (True, False)}

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def inode(self) -> int:
        """Its number."""
        return self._inode

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""
        return self._kinds[follow_symlinks][0]

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file."""
        return self._kinds[follow_symlinks][1]

    def is_symlink(self) -> bool:
        """Whether it is a link."""
        return self._is_link

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Asked of the path."""
        return os.stat(self.path, follow_symlinks=follow_symlinks)


def _told(ask: Callable[..., bool], follow: bool) -> bool:
    try:
        return ask(follow_symlinks=follow)
    except OSError:  # a link to what may not be read
        return False


class Listing:
    """An iterator of entries, which is closed as that of `os.scandir` is."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return next(self._entries)

    def close(self) -> None:
        """There are no more."""
        self._entries = iter(())

    def __enter__(self) -> Listing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
