"""A unified diff that `git apply` and `patch -p1` take, whatever bytes the file holds."""

from __future__ import annotations

import difflib
import io
import os
from collections.abc import Iterable, Iterator

_NO_NEWLINE = b"\n\\ No newline at end of file\n"
_ESCAPES = {0x07: b"a", 0x08: b"b", 0x09: b"t", 0x0A: b"n", 0x0B: b"v", 0x0C: b"f", 0x0D: b"r", 0x22: b'"', 0x5C: b"\\"}
_STYLES = ((b"--- ", b"1"), (b"+++ ", b"1"), (b"@@", b"36"), (b"-", b"31"), (b"+", b"32"))


def unified(path: str, before: bytes, after: bytes) -> bytes:
    """The change of one file; empty where nothing changes.

    The file's name is relative to the current directory, with symbolic links resolved as a rewrite in place resolves
    them (git does not patch through a link). A file outside it is named
    from the root: `git -C / apply` takes that.
    """
    if before == after:
        return b""
    name = _name(path)
    old, new = _quoted(b"a/" + name), _quoted(b"b/" + name)
    # git ends a name with a space in it by a tab: else `patch` takes the rest for a date. No `diff --git` line: below
    # the top of a repository git would take the names to be relative to the top, find nothing, and say nothing.
    end = b"\t" if b" " in name else b""
    header = [b"--- %s%s\n" % (old, end), b"+++ %s%s\n" % (new, end)]
    return b"".join([*header, *_hunks(before, after)])


def painted(diff: bytes) -> bytes:
    """A diff in a terminal's colours."""
    return b"".join(_painted(io.BytesIO(diff)))


def _hunks(before: bytes, after: bytes) -> Iterator[bytes]:
    # Bytes as Latin-1 text and back: difflib wants text, the file may be in any encoding, and only b"\n" ends a line.
    delta = difflib.unified_diff(_lines(before), _lines(after))
    for line in list(delta)[2:]:
        raw = line.encode("latin-1")
        yield raw if raw.endswith(b"\n") else raw + _NO_NEWLINE


def _lines(data: bytes) -> list[str]:
    return [line.decode("latin-1") for line in io.BytesIO(data)]


def _name(path: str) -> bytes:
    if path == "-":
        return b"<stdin>"
    real = os.path.realpath(path)
    name = os.path.relpath(real, os.path.realpath("."))
    return os.fsencode(real.lstrip("/") if name.split(os.sep)[0] == ".." else name)


def _quoted(name: bytes) -> bytes:
    """git's C-style quoting of a name that holds quotes, control characters or anything beyond ASCII."""
    if all(0x20 <= byte < 0x7F and byte not in _ESCAPES for byte in name):
        return name
    return b'"%s"' % b"".join(_escaped(byte) for byte in name)


def _escaped(byte: int) -> bytes:
    if byte in _ESCAPES:
        return b"\\" + _ESCAPES[byte]
    return bytes([byte]) if 0x20 <= byte < 0x7F else b"\\%03o" % byte


def _painted(lines: Iterable[bytes]) -> Iterator[bytes]:
    # Header lines come before the first hunk; within hunks `--- ` is a deleted line that begins with `-- `.
    styles: tuple[tuple[bytes, bytes], ...] = _STYLES
    for line in lines:
        if line.startswith(b"@@"):
            styles = _STYLES[2:]
        style = next((style for start, style in styles if line.startswith(start)), None)
        body = line.rstrip(b"\n")
        yield line if style is None else b"\x1b[%sm%s\x1b[0m%s" % (style, body, line[len(body) :])
