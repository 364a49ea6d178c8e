"""Files that the script opens: whether there are any, and what was in them when rank 0 read them."""

from __future__ import annotations

import functools
import os
import stat
import time
from typing import Any

from .asking import answer, place_of_question
from .written import OPTIONS, is_only_written, write_once

_PATHS = (str, bytes, os.PathLike)
_WRITES = frozenset("wax+")
_SMALL = 1 << 16  # bytes: of files that the script may write later
_LARGE = 1 << 28  # bytes: of files that have changed since the job began
_SLACK = 2.0  # seconds by which file systems round


def shared_open(original: Any) -> Any:
    """`open`. Rank 0 alone writes (`write_once`). A file that cannot be read raises rank 0's error. One that is small,
    or was written since the job began, has the content that it had for rank 0, which may have written it anew
    meanwhile; others each rank reads itself."""
    began = time.time() - _SLACK

    @functools.wraps(original)
    def opened(file: Any, mode: Any = "r", *arguments: Any, **options: Any) -> Any:
        place, writes = None, is_only_written(mode)
        if isinstance(mode, str) and (writes or not _WRITES & set(mode)) and isinstance(file, _PATHS):
            place = place_of_question("open", only_by_script=False)
        how = {**dict(zip(OPTIONS, arguments, strict=False)), **options}
        if place is None or len(arguments) > len(OPTIONS) or not how.keys() <= set(OPTIONS):
            return original(file, mode, *arguments, **options)
        if writes:
            return write_once(place, file, mode, how)
        found: list[Any] = []

        def read() -> bytes | None:
            found.append(original(file, mode, *arguments, **options))
            return _content(original, file, found[0].fileno(), began)

        content = answer(place, "open", read, ((file, mode), {}))
        if found:
            return found[0]
        if content is None:
            return original(file, mode, *arguments, **options)
        given = original(_in_memory(content, file), mode, *arguments, **options)
        raw = getattr(getattr(given, "buffer", given), "raw", given)
        raw.name = os.fspath(file)  # else it would be a number
        return given

    return opened


def shared_descriptor(original: Any) -> Any:
    """`os.open`: as `open`, with what others write to the null device."""

    @functools.wraps(original)
    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        place = place_of_question("os.open", only_by_script=False) if dir_fd is None else None
        if place is None:
            found: int = original(path, flags, mode, dir_fd=dir_fd)
            return found
        here: list[int] = []
        answer(place, "os.open", lambda: here.append(original(path, flags, mode)), ((path, flags), {}))
        if here:
            return here[0]
        writes = flags & (os.O_WRONLY | os.O_RDWR)
        return original(os.devnull, writes) if writes else original(path, flags)  # type: ignore[no-any-return]

    return opened


def _content(original: Any, file: Any, number: int, began: float) -> bytes | None:
    about = os.fstat(number)
    most = _LARGE if about.st_mtime >= began else _SMALL
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
