"""Files that the script opens for writing: rank 0 writes them, and what others write goes nowhere."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import os
import threading
from os import getpid
from typing import Any

from ..foundation import RankFinishedError
from ..job import Nowhere, current
from ..store import apart
from .asking import answer, may_not_wait

OPTIONS = ("buffering", "encoding", "errors", "newline")
_WAYS = frozenset("wax")
_MARK = "_tfdp_number"
_numbers = itertools.count()


def is_only_written(mode: Any) -> bool:
    """Whether a file of that mode can be written and not read."""
    return isinstance(mode, str) and len(_WAYS & set(mode)) == 1 and set(mode) <= _WAYS | set("bt")


def path_of(file: Any) -> Any:
    """The path that rank 0 writes to."""
    return file.path if isinstance(file, Nowhere) else file


def write_once(place: bytes, file: Any, mode: str, how: dict[str, Any]) -> Any:
    """The file, opened by rank 0; on others what takes the same and keeps nothing, and closes when rank 0's is closed.

    how: arguments of `open` by name, those of `OPTIONS`.

    Raises:
        OSError: rank 0's.
    """
    found: list[Any] = []

    def begin() -> tuple[int, int]:
        number = new_number()
        raw = _Told(os.fspath(file), mode.replace("b", "").replace("t", ""), number)
        try:
            found.append(_layered(raw, mode, io.BufferedWriter, io.TextIOWrapper, dict(how)))
        except BaseException:
            raw.close()
            raise
        return number, raw.tell()

    number, at = answer(place, "open", begin, ((path_of(file), mode), {}))
    if found:
        return found[0]
    return _layered(_Elsewhere(os.fspath(path_of(file)), mode, number, at), mode, _Buffer, _Text, dict(how))


def written_nowhere(file: Any, mode: str, how: dict[str, Any]) -> Any:
    """What takes the same as the file, keeps nothing, and is waited for by nobody."""
    raw = _Elsewhere(os.fspath(path_of(file)), mode, -1, 0)
    raw.is_dropped = True
    return _layered(raw, mode, _Buffer, _Text, dict(how))


def _layered(raw: Any, mode: str, buffered: Any, in_text: Any, how: dict[str, Any]) -> Any:
    """As `open` puts a file together, by the arguments `OPTIONS`."""
    buffering = how.pop("buffering", -1)
    if "b" in mode and set(how.values()) - {None}:
        raise ValueError(f"binary mode doesn't take {' or '.join(how)}")
    if buffering == 0:
        if "b" not in mode:
            raise ValueError("can't have unbuffered text I/O")
        return raw
    buffer = buffered(raw, io.DEFAULT_BUFFER_SIZE if buffering in (-1, 1) else buffering)
    if "b" in mode:
        return buffer
    text = in_text(buffer, **how, line_buffering=buffering == 1)
    text.mode = mode
    return text


def _key(number: int) -> str:
    return f"closed/{number}"


def new_number() -> int:
    """Of a file that rank 0 opens, in its own count."""
    return next(_numbers)


def ends_with_root(original: Any) -> Any:
    """A method by which an object ends that writes a file, and has its number by `mark`: others return when rank 0 has
    ended its own."""

    @functools.wraps(original)
    def end(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        number = self.__dict__.pop(_MARK, None)
        if number is not None and current().topology.rank == 0:
            _tell_closed(number)
        elif number is not None:
            _wait_until_closed(number)

    return end


def mark(writer: Any, number: int) -> None:
    """Let an object end with rank 0's of that number."""
    writer.__dict__[_MARK] = number


def _tell_closed(number: int) -> None:
    with contextlib.suppress(OSError):  # whoever keeps the store is gone, and this process ends
        current().store.publish(_key(number), b"")


def _wait_until_closed(number: int) -> None:
    """Return when rank 0 has closed the file: who reads it next finds all that was written."""
    if not may_not_wait():
        with contextlib.suppress(RankFinishedError):
            current().store.fetch(_key(number), threading.TIMEOUT_MAX, publisher=0)


class _Told(io.FileIO):
    """Rank 0's, or, where the arguments are a rank's own, that rank's."""

    def __init__(self, file: Any, mode: str, number: int) -> None:
        self._number: int | None = None
        super().__init__(file, mode)
        self._number = number if current().topology.rank == 0 else None
        self._pid = getpid()

    def close(self) -> None:
        """And tell the others."""
        was_open = not self.closed
        super().close()
        if was_open and self._number is not None and getpid() == self._pid:
            _tell_closed(self._number)


class _Elsewhere(io.RawIOBase):
    """What a file is on ranks that do not write it: it counts."""

    def __init__(self, name: str, mode: str, number: int, at: int) -> None:
        self.name, self.mode = name, mode
        self._number, self._at, self._size, self._fd = number, at, at, -1
        self.is_dropped = False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        if self._fd < 0:
            with apart():
                self._fd = os.open(os.devnull, os.O_WRONLY)
        return self._fd

    def write(self, data: Any) -> int:
        count = memoryview(data).nbytes
        self._at += count
        self._size = max(self._size, self._at)
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def truncate(self, size: int | None = None) -> int:
        self._size = self._at if size is None else size
        return self._size

    def close(self) -> None:
        """When rank 0's is closed: who reads the file next finds all that was written. Dropped, it does not wait."""
        if self.closed:
            return
        super().close()
        if self._fd >= 0:
            os.close(self._fd)
        if not self.is_dropped:
            _wait_until_closed(self._number)

    def __del__(self) -> None:
        self.is_dropped = True
        super().__del__()


class _Buffer(io.BufferedWriter):
    def __del__(self) -> None:
        self.raw.is_dropped = True  # type: ignore[attr-defined]
        super().__del__()


class _Text(io.TextIOWrapper):
    keeps_nothing = True  # and shows nothing

    def __del__(self) -> None:
        self.buffer.raw.is_dropped = True  # type: ignore[attr-defined]
        super().__del__()
