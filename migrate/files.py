"""Bytes in, bytes out: what a Python source file says, and a rewrite that leaves every untouched byte as it was."""

from __future__ import annotations

import ast
import codecs
import collections
import contextlib
import errno
import io
import os
import re
import secrets
import stat
import tokenize
import warnings
from dataclasses import dataclass

# A part of a script whose imports are elsewhere is known by its tape.
_FRAMEWORKS = (b"tensorflow", b"keras", b"horovod", b"smdistributed", b"GradientTape")
_COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_COMMENT_OR_BLANK = re.compile(rb"[ \t\f]*(?:#.*)?\r?\Z")
_LONE_CR = re.compile(r"\r(?!\n)")
_INDENTED_BY_TAB = re.compile(r" *\t")
_SAVE_AS_UTF8 = "save the file as UTF-8"


class UnreadableSource(Exception):  # noqa: N818 - the name is the contract
    """Bytes that are no Python source tfdp can keep intact. `line` and `column` (in characters) count from 1."""

    def __init__(self, path: str, line: int, column: int, reason: str) -> None:
        super().__init__(path, line, column, reason)
        self.path = path
        self.line = line
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.reason}"


@dataclass(frozen=True)
class Text:
    """A source file's text, newlines as they are in the file, and what it takes to write it back.

    blanks: the lines at the end that hold nothing else.
    """

    path: str
    source: str
    encoding: str
    bom: bool
    newline: str
    blanks: str = ""


def mentions_framework(data: bytes) -> bool:
    """Whether the file could have to do with TensorFlow at all; where it is False nothing else looks at the file."""
    return any(name in data for name in _FRAMEWORKS)


def decode(path: str, data: bytes) -> Text:
    """The text of a Python source file, as PEP 263 says it is encoded.

    Raises UnreadableSource, with the place, for everything this interpreter would not parse (binary data, a wrong or
    unknown encoding, a syntax error, nesting too deep) and for what could not be written back byte by byte.
    """
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    encoding = _encoding(path, body, bom)
    source = _decoded(path, body, encoding)
    _refuse_carriage_returns(path, source)
    _parse(path, source)
    newline = "\r\n" if source.count("\r\n") * 2 > source.count("\n") else "\n"
    end = source.find("\n", len(source.rstrip(" \t\r\n"))) + 1 or len(source)
    return Text(path, source[:end], encoding, bom, newline, source[end:])  # libcst may lose a line before blanks


def encode(text: Text, source: str) -> bytes:
    """`source` as bytes in the encoding of `text`, its byte order mark kept.

    Raises UnreadableSource for a character which that encoding lacks.
    """
    try:
        body = (source + text.blanks).encode(text.encoding)
    except UnicodeEncodeError as error:
        line, column = _place(source, error.start)
        missing = f"{source[error.start]!r} cannot be written in the file's encoding {text.encoding}; {_SAVE_AS_UTF8}"
        raise UnreadableSource(text.path, line, column, missing) from error
    return codecs.BOM_UTF8 + body if text.bom else body


def write_atomic(path: str, data: bytes, mode: int | None = None) -> None:
    """Write the whole file or nothing of it, keep its mode and owner, and leave no other file behind.

    A symbolic link stays one: its target is written. A pipe or a device is written to directly. `mode`
    (permission bits) is for a file that does not exist yet. Raises OSError.
    """
    try:
        present = os.stat(path)
    except FileNotFoundError:
        present = None
    if present is not None and stat.S_ISDIR(present.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if present is not None and not stat.S_ISREG(present.st_mode):
        with open(path, "wb") as device:
            device.write(data)
        return
    # A rename needs only the directory to be writable; a file its owner made read-only is still not ours to replace.
    if present is not None and not (present.st_mode & 0o222 and os.access(path, os.W_OK)):
        raise PermissionError(errno.EACCES, "the file is read-only", path)
    _replace(os.path.realpath(path), data, present, mode)


def write_new(path: str, data: bytes, mode: int) -> None:
    """Write a file that is not there yet, the whole of it or nothing.

    Raises OSError: FileExistsError where it is there, which is left alone.
    """
    target = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    _replace(target, data, None, mode, new=True)


def _replace(target: str, data: bytes, present: os.stat_result | None, mode: int | None, *, new: bool = False) -> None:
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".tfdp-{secrets.token_hex(8)}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666 if mode is None else mode)
    except OSError as error:
        reason = f"{os.strerror(error.errno or 0)}: cannot make a new file in the directory"
        raise OSError(error.errno, reason, folder) from error
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if present is not None:
                _keep_owner_and_mode(descriptor, present)
            os.fsync(descriptor)
        if new:
            _name(temporary, target)
        else:
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _name(temporary: str, target: str) -> None:
    """Give a file another name, which no file may have."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise
        os.rename(temporary, target)
    else:
        os.unlink(temporary)


def _keep_owner_and_mode(descriptor: int, present: os.stat_result) -> None:
    with contextlib.suppress(OSError):  # only root may give a file away, and not on every file system
        os.fchown(descriptor, present.st_uid, present.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(present.st_mode))


def _sync_folder(folder: str) -> None:
    # The new file is complete either way; a file system that cannot sync a directory is no error.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _encoding(path: str, body: bytes, bom: bool) -> str:
    """The codec's name by PEP 263. tokenize.detect_encoding gives no place, and fails on `# café, coding: latin-1`."""
    for number, line in enumerate(body.split(b"\n", 2)[:2], start=1):
        cookie = _COOKIE.match(line)
        if cookie is not None:
            return _codec(path, number, cookie, bom)
        if not _COMMENT_OR_BLANK.match(line):
            break
    return "utf-8"


def _codec(path: str, line: int, cookie: re.Match[bytes], bom: bool) -> str:
    name = cookie[1].decode("ascii")
    column = cookie.start(1) + 1
    if re.match(r"utf[-_]8(?:[-_]|\Z)", name, re.IGNORECASE):
        return "utf-8"
    try:
        "".encode(name)  # also turns down codecs that are not about text, such as rot13
        codec = codecs.lookup(name).name
    except LookupError as error:
        reason = f"unknown encoding {name!r}; name one that Python knows, or {_SAVE_AS_UTF8}"
        raise UnreadableSource(path, line, column, reason) from error
    if bom and codec != "utf-8":
        reason = f"the file begins with a UTF-8 byte order mark but says that it is {name!r}; delete that word"
        raise UnreadableSource(path, line, column, reason)
    return codec


def _decoded(path: str, body: bytes, encoding: str) -> str:
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UnreadableSource(path, 1, 1, f"this is UTF-16, which Python does not run; {_SAVE_AS_UTF8}")
    nul = body.find(b"\0")
    if nul >= 0:
        line, column = _place(body[:nul].decode("latin-1"), nul)
        raise UnreadableSource(path, line, column, "a null byte: this is not a Python source file; check the path")
    try:
        source = body.decode(encoding)
    except UnicodeDecodeError as error:
        before = body[: error.start].decode(encoding, "replace")
        line, column = _place(before, len(before))
        step = f"{_SAVE_AS_UTF8}, or name its encoding in the first line: # -*- coding: latin-1 -*-"
        reason = f"byte 0x{body[error.start]:02x} is not {encoding}; {step}"
        raise UnreadableSource(path, line, column, reason) from error
    if source.encode(encoding, "replace") != body:
        raise UnreadableSource(path, 1, 1, f"this {encoding} text cannot be written back unchanged; {_SAVE_AS_UTF8}")
    return source


def _refuse_carriage_returns(path: str, source: str) -> None:
    # libcst drops or adds a newline in these two cases; bare carriage returns elsewhere survive it.
    if not source.endswith("\r") and ("\r" not in source or "\n" in source):
        return
    lone = _LONE_CR.search(source)
    assert lone is not None
    line, column = _place(source, lone.start())
    reason = "the line ends in a bare carriage return (old Mac OS); convert the file's line ends: tr '\\r' '\\n'"
    raise UnreadableSource(path, line, column, reason)


def _parse(path: str, source: str) -> None:
    """Let CPython look first: nesting that it turns down overflows the stack in libcst's native parser: a crash."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, path, "exec", flags=ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        reason = f"this is not valid Python: {error.msg}"
        raise UnreadableSource(path, error.lineno or 1, max(error.offset or 1, 1), reason) from error
    except (RecursionError, MemoryError) as error:
        reason = "nested too deeply for Python's own parser; split this expression, or this if/elif chain"
        raise UnreadableSource(path, _deepest(source), 1, reason) from error


def read_by_python_alone(path: str, source: str, message: str, line: int) -> UnreadableSource:
    """What is said of a text that `decode` has let pass and the parser of syntax trees with all their blanks does not.

    It measures a tab in an indentation as another width than Python does, and gives no line for it.
    """
    tabs = [number for number, text in enumerate(source.splitlines(), 1) if _INDENTED_BY_TAB.match(text)]
    if not tabs:
        return UnreadableSource(path, line, 1, f"libCST cannot read this text, which Python can: {message}")
    reason = "libCST cannot read this indentation of tabs and blanks, which Python can; make it blanks: expand -t 8"
    return UnreadableSource(path, tabs[0], 1, reason)


def _deepest(source: str) -> int:
    """The line of the statement with the most operators inside one another, or of the longest chain of `elif`."""
    depths, chains = collections.Counter[int](), dict[int, int]()
    start, inside, depth = 0, list[int](), 0
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            line, column = token.start
            if not start and token.type in {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}:
                chained = token.string == "elif"
                start, inside, depth = chains.get(column, line) if chained else line, [], 0
                chains[column] = start
                depths[start] += chained
            if token.type == tokenize.OP:
                inside, depth = _deeper(token.string, inside, depth)
                depths[start] = max(depths[start], depth)
            start = 0 if token.type == tokenize.NEWLINE else start
    return max(depths, key=lambda line: depths[line], default=1)


def _deeper(operator: str, inside: list[int], depth: int) -> tuple[list[int], int]:
    """The depths of the open brackets and of the expression after an operator."""
    if operator in "([{":
        return [*inside, depth + 1], depth + 1
    if operator in ")]}":
        return inside[:-1], inside[-1] if inside else depth
    return inside, depth + 1 if operator != "," else inside[-1] if inside else 0


def _place(text: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of an offset in `text`."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
