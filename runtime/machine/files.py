"""Files that the script opens: whether there are any, and what was in them when rank 0 read them."""

from __future__ import annotations

import fcntl
import functools
import os
import stat
from typing import Any

from .asking import answer, is_echo, place_of_question
from .paths import LARGE, PATHS, is_of_this_job
from .written import OPTIONS, is_only_written, path_of, write_once, written_nowhere

_SMALL = 1 << 16  # bytes: of files that the script may write later


def shared_open(original: Any) -> Any:
    """`open`. Rank 0 alone writes (`write_once`). A file that cannot be opened raises rank 0's error. One that is
    small, or was written since the job began, has the content that it had for rank 0, which may have written it anew
    meanwhile, and is a copy where it can be written, too; others each rank opens itself."""

    @functools.wraps(original)
    def opened(file: Any, mode: Any = "r", *arguments: Any, **options: Any) -> Any:
        how = {**dict(zip(OPTIONS, arguments, strict=False)), **options}
        is_plain = isinstance(mode, str) and len(arguments) <= len(OPTIONS) and how.keys() <= set(OPTIONS)
        place = place_of_question("open", False, file) if is_plain and isinstance(file, PATHS) else None
        if place is None:
            if is_plain and is_only_written(mode) and is_echo(file):
                return written_nowhere(file, mode, how)
            return original(file, mode, *arguments, **options)
        if is_only_written(mode):
            return write_once(place, file, mode, how)
        found: list[Any] = []

        def read() -> bytes | None:
            found.append(original(file, mode, *arguments, **options))
            return _content(original, file, found[0].fileno(), _SMALL * (not place.by_library), "+" in mode)

        content = answer(place, "open", read, ((path_of(file), mode), {}))
        if found:
            return found[0]
        if content is None:
            return original(file, mode, *arguments, **options)
        given = original(_in_memory(content, file), mode.replace("x", "w"), *arguments, **options)
        raw = getattr(getattr(given, "buffer", given), "raw", given)
        raw.name = os.fspath(path_of(file))  # else it would be a number
        return given

    return opened


def shared_descriptor(original: Any, read_by: Any) -> Any:
    """`os.open`: as `open`, with what others write to the null device. `read_by`: Python's own `open`."""

    @functools.wraps(original)
    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        is_named = dir_fd is None and flags & os.O_TMPFILE != os.O_TMPFILE
        place = place_of_question("os.open", False, path) if is_named else None
        if place is None:
            nowhere = is_named and flags & os.O_WRONLY and is_echo(path)
            found: int = original(os.devnull if nowhere else path, flags, mode, dir_fd=dir_fd)
            return found
        here: list[int] = []

        def begin() -> bytes | None:
            here.append(original(path, flags, mode))
            if flags & os.O_WRONLY:
                return None
            return _content(read_by, path, here[0], _SMALL * (not place.by_library), bool(flags & os.O_RDWR))

        content = answer(place, "os.open", begin, ((path, flags), {}))
        if here:
            return here[0]
        if content is None:
            return original(os.devnull, os.O_WRONLY) if flags & os.O_WRONLY else original(path, flags)  # type: ignore[no-any-return]
        number = _in_memory(content, path)
        fcntl.fcntl(number, fcntl.F_SETFL, flags & os.O_APPEND)
        return number

    return opened


def _content(original: Any, file: Any, number: int, most: int, changes: bool) -> bytes | None:
    """What is in it, if it changes, has changed or is not larger than `most`: the script may write it later, and
    packages read images and tables that nobody writes."""
    about = os.fstat(number)
    most = LARGE if changes or is_of_this_job(about.st_mtime) else most
    if not stat.S_ISREG(about.st_mode) or about.st_size > most:
        return None
    with original(file, "rb") as again:
        found: bytes = again.read()
    return found


def _in_memory(content: bytes, file: Any) -> int:
    """The number of an open file with that content, which is in no folder."""
    number = os.memfd_create(os.path.basename(os.fsdecode(file))[:200])
    with open(number, "wb", closefd=False) as whole:
        whole.write(content)
    os.lseek(number, 0, os.SEEK_SET)
    return number
