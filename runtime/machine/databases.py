"""Files that packages read and write by code of their own, not by `open`: each worker has a copy of rank 0's."""

from __future__ import annotations

import contextlib
import dbm
import functools
import io
import itertools
import os
import tempfile
from collections.abc import Callable
from typing import Any

from ..store import apart
from .asking import answer, begun, is_echo, place_of_question
from .paths import LARGE, PATHS, is_of_this_job
from .written import ends_with_root, mark, new_number

# The files of a database, by what is added to its name; of `dbm` in any of its formats.
_SQLITE, _DBM = ("", "-wal"), ("", ".bak", ".dat", ".db", ".dir", ".pag")
_IN_MEMORY = {"driver": "core", "backing_store": False, "locking": False}  # of an HDF5 file
_copies: list[tempfile.TemporaryDirectory[str]] = []
_numbers = itertools.count()


def share_databases(put: Callable[[Any, str, Any], None]) -> None:
    """From now on a database of `sqlite3`, and one of `dbm` and `shelve`, is begun as rank 0's, and then each worker's
    own, which all change alike; rank 0's is in the file."""
    with contextlib.suppress(ImportError):  # Python may have been built without it
        import sqlite3

        put(sqlite3, "connect", _on_a_copy(sqlite3.connect, "sqlite3.connect", _SQLITE))
    put(dbm, "open", _on_a_copy(dbm.open, "dbm.open", _DBM))


def _on_a_copy(original: Any, name: str, parts: tuple[str, ...]) -> Any:
    @functools.wraps(original)
    def opened(file: Any, *arguments: Any, **options: Any) -> Any:
        is_named = isinstance(file, PATHS) and os.fsdecode(file) not in ("", ":memory:") and not options.get("uri")
        is_named = is_named and "r" not in (*arguments[:1], options.get("flag"))
        place = place_of_question(name, False, file) if is_named else None
        if place is None:
            return original(file, *arguments, **options)
        found: list[Any] = []

        def begin() -> dict[str, bytes] | None:
            before = _content(os.fsdecode(file), parts)
            found.append(original(file, *arguments, **options))
            return before

        content = answer(place, name, begin, ((file, *arguments), options))
        if found:
            return found[0]
        with apart():
            return original(file if content is None else _copy(file, content), *arguments, **options)

    return opened


def _content(path: str, parts: tuple[str, ...], only_of_this_job: bool = False) -> dict[str, bytes] | None:
    """What is in the files that there are, by part; None where that is too much, or was there before the job."""
    there = [part for part in parts if os.path.isfile(path + part)]
    if only_of_this_job and not any(is_of_this_job(os.path.getmtime(path + part)) for part in there):
        return None
    if sum(os.path.getsize(path + part) for part in there) > LARGE:
        return None
    found = {}
    for part in there:
        with open(path + part, "rb") as file:
            found[part] = file.read()
    return found


def new_folder() -> str:
    """An empty one of this worker's own, until it ends."""
    with apart():
        if not _copies:
            _copies.append(tempfile.TemporaryDirectory(prefix="tfdp-"))
        folder = os.path.join(_copies[0].name, str(next(_numbers)))
        os.mkdir(folder)
    return folder


def _copy(file: Any, content: dict[str, bytes]) -> str:
    path = os.path.join(new_folder(), os.path.basename(os.fsdecode(file)))
    with apart():
        for part, found in content.items():
            with open(path + part, "wb") as copied:
                copied.write(found)
    return path


def share_hdf5(module: Any) -> None:
    """The same of `h5py.File`, on other workers in memory, and closed there when rank 0's is: what reads it next finds
    all that was written."""
    begin = module.File.__init__

    @functools.wraps(begin)
    def opened(self: Any, name: Any, mode: str = "r", *arguments: Any, **options: Any) -> None:
        is_named = isinstance(name, PATHS) and not arguments and options.get("driver") is None
        place = place_of_question("h5py.File", False, name) if is_named else None
        if place is None:
            begin(
                self,
                name,
                mode,
                *arguments,
                **options,
                **(_IN_MEMORY if mode != "r" and is_named and is_echo(name) else {}),
            )
            return

        def start() -> tuple[int, dict[str, bytes] | None]:
            before = {} if mode == "w" else _content(os.fsdecode(name), ("",), only_of_this_job=mode == "r")
            begin(self, name, mode, **options)
            return new_number(), before

        is_here, (number, content) = begun(place, "h5py.File", start, ((name, mode), {}))
        if not is_here and content is not None:
            begin(self, io.BytesIO(content.get("", b"")), mode, **options)
        elif not is_here:
            begin(self, name, mode, **options, **(_IN_MEMORY if mode != "r" else {}))
        if mode != "r":
            mark(self, number)

    module.File.__init__, module.File.close = opened, ends_with_root(module.File.close)
