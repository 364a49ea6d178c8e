"""The diff is one that git and patch take, for every kind of file and of name."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tfdp.migrate.report import diff

CHANGES = {
    "plain": (b"a\nb\nc\n", b"a\nx\nc\n"),
    "no final newline": (b"a\nb", b"a\nx"),
    "final newline is added": (b"a\nb", b"a\nb\n"),
    "final newline is dropped": (b"a\nb\n", b"a\nb"),
    "no final newline, change far above": (b"a\n" + b"b\n" * 20 + b"c", b"x\n" + b"b\n" * 20 + b"c"),
    "crlf": (b"a\r\nb\r\n", b"a\r\nx\r\nb\r\n"),
    "crlf without the last": (b"a\r\nb", b"x\r\nb"),
    "mixed newlines": (b"a\r\nb\nc\r\n", b"a\r\nb\nx\r\n"),
    "bare carriage return": (b"a\rb\nc\n", b"a\rb\nx\n"),
    "utf-8": ("é\nb\n".encode(), "é\nü\n".encode()),
    "latin-1": (b"\xe9\nb\n", b"\xe9\n\xfc\n"),
    "line separators that are no newlines": ("\u2028\x0c\x85\nb\n".encode(), "\u2028\x0c\x85\nx\n".encode()),
    "lines that look like headers": (b"-- a\n++ b\nc\n", b"++ b\n-- a\n@@ c\n"),
    "all new": (b"", b"a\n"),
    "whitespace at the end": (b"a  \n\t\nb\n", b"a  \n\t\nb  \n"),
}
NAMES = ["train.py", "with space.py", "sub/train.py", "é.py", 'quo"te\\.py', "tab\there.py", "new\nline.py", "~$'&.py"]

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def apply(folder: Path, patch: bytes, *command: str) -> None:
    done = subprocess.run(command, input=patch, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@needs_git
@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES.keys())
def test_git_applies_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes, after: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "train.py", before)
    apply(tmp_path, diff.unified("train.py", before, after), "git", "apply", "--unidiff-zero", "-")
    assert path.read_bytes() == after


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES.keys())
def test_patch_applies_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes, after: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "with space.py", before)
    apply(tmp_path, diff.unified(str(path), before, after), "patch", "--binary", "-p1")
    assert path.read_bytes() == after


@needs_git
@pytest.mark.parametrize("name", NAMES)
def test_git_finds_the_file_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / name, b"a\n")
    apply(tmp_path, diff.unified(name, b"a\n", b"b\n"), "git", "apply", "-")
    assert path.read_bytes() == b"b\n"


@needs_git
def test_git_applies_it_in_a_folder_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    path = write(tmp_path / "sub" / "train.py", b"a\n")
    monkeypatch.chdir(tmp_path / "sub")
    apply(tmp_path / "sub", diff.unified("train.py", b"a\n", b"b\n"), "git", "apply", "-")
    assert path.read_bytes() == b"b\n"


@needs_git
def test_a_link_is_named_by_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "real" / "train.py", b"a\n")
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    apply(tmp_path, diff.unified("link/train.py", b"a\n", b"b\n"), "git", "apply", "-")
    assert path.read_bytes() == b"b\n"


def test_a_file_outside_is_named_from_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    patch = diff.unified("../train.py", b"a\n", b"b\n").decode()
    assert f"--- a{tmp_path.resolve()}/train.py\n" in patch


def test_no_change_no_diff() -> None:
    assert diff.unified("train.py", b"a\n", b"a\n") == b""


def test_standard_input_has_a_name() -> None:
    assert b"--- a/<stdin>\n" in diff.unified("-", b"a\n", b"b\n")


def test_colours_are_only_added() -> None:
    before, after = CHANGES["lines that look like headers"]
    plain = diff.unified("train.py", before, after)
    painted = diff.painted(plain)
    assert b"\x1b" not in plain
    for code in (b"\x1b[0m", b"\x1b[1m", b"\x1b[31m", b"\x1b[32m", b"\x1b[36m"):
        assert code in painted
        painted = painted.replace(code, b"")
    assert painted == plain
