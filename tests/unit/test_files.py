"""Bytes in, bytes out: every file comes back as it was, or is turned down with its place."""

import codecs
import os
import stat
from pathlib import Path

import libcst as cst
import pytest

from tfdp.migrate import files
from tfdp.migrate.files import UnreadableSource

ROUND_TRIPS = {
    "empty": b"",
    "no final newline": b"a = 1",
    "crlf": b"a = 1\r\nif a:\r\n\tb = 2\r\n",
    "mixed newlines": b"a = 1\r\nb = 2\nc = 3\r\n",
    "bare carriage return inside": b"a = 1\nb = 2\rc = 3\n",
    "tabs": b"if 1:\n\ta = 1\n",
    "form feed": b"a = 1\n\x0c\nb = 2\n",
    "byte order mark": codecs.BOM_UTF8 + b"a = 1\n",
    "byte order mark and cookie": codecs.BOM_UTF8 + b"# coding: utf8\na = 1\n",
    "utf-8": "# naïve\nx = 'データ'\n".encode(),
    "latin-1 cookie": "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
    "cookie in the second line": "#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\nx = '€'\n".encode("cp1252"),
    "non-ascii before the cookie": "# café, coding: latin-1\nx = 'é'\n".encode("latin-1"),
    "cookie with crlf": "# coding: latin-1\r\nx = 'é'\r\n".encode("latin-1"),
    "shift-jis": "# coding: shift_jis\nx = '学習'\n".encode("shift_jis"),
    "utf-8-sig cookie without the mark": b"# coding: utf-8-sig\na = 1\n",
    "line separators that are no newlines": "x = '\x85\u2028'\n".encode(),
}


@pytest.mark.parametrize("data", ROUND_TRIPS.values(), ids=ROUND_TRIPS.keys())
def test_text_comes_back_byte_by_byte(data: bytes) -> None:
    text = files.decode("train.py", data)
    assert files.encode(text, text.source) == data
    assert not text.source.startswith("\ufeff")


def test_blanks_in_a_last_line_without_an_end_come_back() -> None:
    for tail in ("    ", "\t", "\n\n   \n \t"):
        data = f"import tensorflow as tf\nif tf:\n    print(tf)\n{tail}".encode()
        text = files.decode("a.py", data)
        assert cst.parse_module(text.source).code == text.source
        assert files.encode(text, text.source) == data


def test_a_cookie_after_code_is_only_a_comment() -> None:
    assert files.decode("train.py", b"a = 1\n# coding: latin-1\n").encoding == "utf-8"


@pytest.mark.parametrize(
    ("data", "newline"),
    [(b"a\nb\n", "\n"), (b"a\r\nb\r\n", "\r\n"), (b"a\r\nb\r\nc\n", "\r\n"), (b"a\r\nb\nc\n", "\n"), (b"a", "\n")],
)
def test_newline_is_the_one_most_lines_end_in(data: bytes, newline: str) -> None:
    assert files.decode("train.py", data).newline == newline


UNREADABLE = {
    "not utf-8": (b"a = 1\nb = '\xe9'\n", 2, 6, "byte 0xe9 is not utf-8"),
    "not utf-8 after wide characters": ("x = 'データ".encode() + b"\xff'\n", 1, 9, "byte 0xff"),
    "null byte": (b"a = 1\n\0\n", 2, 1, "null byte"),
    "utf-16": ("import tensorflow\n".encode("utf-16"), 1, 1, "UTF-16"),
    "unknown cookie": (b"# coding: klingon\n", 1, 11, "unknown encoding 'klingon'"),
    "cookie that is no text encoding": (b"# coding: rot13\n", 1, 11, "unknown encoding 'rot13'"),
    "mark against cookie": (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1, 11, "byte order mark"),
    "cannot be written back": (b"# coding: utf-7\nx = '+AGE-'\n", 1, 1, "cannot be written back"),
    "old mac os": (b"a = 1\rb = 2\r", 1, 6, "bare carriage return"),
    "ends in a bare carriage return": (b"a = 1\nb = 2\r", 2, 6, "bare carriage return"),
    "syntax error": (b"a = 1\nb = = 2\n", 2, 5, "not valid Python"),
    "tabs against spaces": (b"if 1:\n\tb = 1\n        c = 2\n", 3, 1, "not valid Python"),
    "too many parentheses": (b"(" * 5000 + b")" * 5000, 1, 1, "not valid Python: too many nested parentheses"),
    "deep expression": (b"-" * 100_000 + b"1", 1, 1, "nested too deeply"),
    "deep chain": (b"a" + b".b" * 100_000, 1, 1, "nested too deeply"),
}


@pytest.mark.parametrize(("data", "line", "column", "reason"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_no_source_is_turned_down_with_its_place(data: bytes, line: int, column: int, reason: str) -> None:
    with pytest.raises(UnreadableSource) as caught:
        files.decode("train.py", data)
    error = caught.value
    assert reason in error.reason
    assert error.line == line
    if "parentheses" not in reason and "tabs" not in reason:
        assert error.column == column or "not valid Python" in error.reason
    assert str(error).startswith(f"train.py:{line}:")


def test_a_character_the_encoding_lacks_is_named() -> None:
    text = files.decode("train.py", b"# coding: latin-1\nx = 1\n")
    with pytest.raises(UnreadableSource, match=r"train\.py:2:6: '→' cannot be written in .* encoding iso8859-1"):
        files.encode(text, "# coding: latin-1\nx = '→'\n")


@pytest.mark.parametrize("word", [b"tensorflow", b"keras", b"horovod", b"smdistributed"])
def test_mentions_framework(word: bytes) -> None:
    assert files.mentions_framework(b"import " + word)
    assert not files.mentions_framework(b"import torch")


def only(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_write_keeps_the_mode_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"old")
    path.chmod(0o751)
    files.write_atomic(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert only(tmp_path) == ["train.py"]


def test_a_new_file_gets_the_mode_asked_for_within_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write_atomic(str(tmp_path / "a.py"), b"", 0o777)
        files.write_atomic(str(tmp_path / "b.py"), b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.py").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "b.py").stat().st_mode) == 0o640


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "train.py"
    target.write_bytes(b"old")
    link = tmp_path / "link.py"
    link.symlink_to("there/train.py")
    files.write_atomic(str(link), b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert only(tmp_path) == ["link.py", "there"]


def test_a_read_only_file_is_left_alone_even_for_root(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        files.write_atomic(str(path), b"new")
    assert path.read_bytes() == b"old"


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        files.write_atomic(str(tmp_path), b"new")


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="cannot make a new file in the directory"):
        files.write_atomic(str(tmp_path / "nowhere" / "train.py"), b"new")


def test_a_device_is_written_to_and_not_replaced() -> None:
    files.write_atomic(os.devnull, b"new")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "ctrl-c"])
@pytest.mark.parametrize("step", ["fsync", "replace", "fchmod"])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, step: str
) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        files.write_atomic(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert only(tmp_path) == ["train.py"]
