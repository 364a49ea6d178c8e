"""Whatever is wrong with the input: a clear message with its place, the right exit code, and nothing half-written."""

import os
from pathlib import Path

import pytest

USAGE = {
    "no path": (["migrate"], "Missing argument 'PATH...'"),
    "unknown option": (["migrate", "--dif", "a.py"], "--diff"),
    "unknown batch mode": (["migrate", "--batch", "both", "a.py"], "'both' is not one of 'auto', 'per-worker'"),
    "output for two": (["migrate", "-o", "c.py", "a.py", "b.py"], "-o c.py takes the result of one input"),
    "output for a directory": (["migrate", "-o", "c.py", "."], "-o c.py takes the result of one input"),
    "output and check": (["migrate", "-o", "c.py", "--check", "a.py"], "--diff and --check never do"),
    "output and diff": (["migrate", "-o", "c.py", "--diff", "a.py"], "--diff and --check never do"),
    "unknown command": (["migrat"], "migrat"),
    "unknown rule": (["explain", "TFDP999"], "no rule is called 'TFDP999'"),
    "run without a number": (["run", "a.py"], "Missing option '-np'"),
    "run on none": (["run", "-np", "0", "a.py"], "0 is not in the range x>=1"),
    "run nothing": (["run", "-np", "2"], "Missing argument"),
    "run in the wrong order": (
        ["run", "a.py", "--epochs", "3", "-np", "2", "-x"],
        "options for tfdp come before the script: tfdp run -np 2 a.py --epochs 3 -x",
    ),
    "run in the wrong order, joined": (["run", "-m", "pkg", "--np=auto"], "tfdp run -np auto -m pkg"),
    "run by an option of its own": (["run", "--", "a.py", "-np", "2"], "Missing option '-np'"),
    "run on many": (["run", "-n", "many", "a.py"], "'many' is not a valid integer range"),
    "facts of nothing": (["facts"], "Missing argument 'PATH[:LINE]'"),
}


@pytest.mark.parametrize(("args", "said"), USAGE.values(), ids=USAGE.keys())
def test_usage_errors_end_with_2_before_anything_is_done(here, tmp_path: Path, script: bytes, args, said: str) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_bytes(script)
    done = here(*args)
    assert (done.code, done.out) == (2, b"")
    assert said in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "b.py"]
    assert (tmp_path / "a.py").read_bytes() == script


CONTENTS = {
    "binary": (b"\x7fELF\0\0tensorflow", ":1:5: error: a null byte"),
    "binary, nothing of TensorFlow": (b"\x7fELF\0\0", ":1:5: error: a null byte"),
    "not utf-8": (b"import tensorflow\nx = '\xe9'\n", ":2:6: error: byte 0xe9 is not utf-8; save the file as"),
    "utf-16": ("import tensorflow\n".encode("utf-16"), ":1:1: error: this is UTF-16"),
    "unknown cookie": (b"# coding: klingon\nimport tensorflow\n", ":1:11: error: unknown encoding 'klingon'"),
    "old mac os": (b"import tensorflow\rx = 1\r", ":1:18: error: the line ends in a bare carriage return"),
    "syntax": (b"import tensorflow\nx = a(1\n", ":2:6: error: this is not valid Python: '(' was never closed"),
    "python 2": (b"import tensorflow\nprint 'hello'\n", ":2:1: error: this is not valid Python: Missing parentheses"),
    "parentheses": (b"import tensorflow\n" + b"(" * 10_000 + b")" * 10_000, "too many nested parentheses"),
    "deep operators": (b"import tensorflow\nx = " + b"-" * 100_000 + b"1\n", "error: nested too deeply"),
    "deep attributes": (b"import tensorflow\nx = a" + b".b" * 50_000 + b"\n", "error: nested too deeply"),
    "deep elif": (b"import tensorflow\nif 0: 1\n" + b"elif 0: 1\n" * 50_000, "error: nested too deeply"),
}


# A process of its own for each: nesting that reaches libcst's native parser would take the tests with it.
@pytest.mark.long(keeps=8)
@pytest.mark.parametrize(("data", "said"), CONTENTS.values(), ids=CONTENTS.keys())
def test_what_is_no_python_source_is_an_error_with_its_place(tfdp, tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "a.py").write_bytes(data)
    done = tfdp("migrate", "a.py")
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith("a.py")
    assert said in done.err
    assert done.err.endswith("1 file failed\n")
    assert "Traceback" not in done.err
    assert (tmp_path / "a.py").read_bytes() == data


@pytest.mark.parametrize("args", [["--check", "-"], ["--diff", "-"], ["-"], ["-o", "out.py", "-"]])
def test_such_bytes_are_an_error_everywhere(here, tmp_path: Path, args: list[str]) -> None:
    done = here("migrate", *args, stdin=b"import tensorflow\0")
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith("<stdin>:1:18: error: a null byte")
    assert list(tmp_path.iterdir()) == []


def test_deep_nesting_that_python_takes_and_the_facts_do_not(here, tmp_path: Path, script: bytes) -> None:
    (tmp_path / "a.py").write_bytes(script + b"x = a" + b".b()" * 600 + b"\n")
    done = here("migrate", "a.py")
    assert done.code == 2
    line = len(script.splitlines()) + 1
    assert f"a.py:{line}:1: error: nested too deeply" in done.err


def test_a_walk_passes_over_broken_files_that_have_nothing_to_do_with_it(here, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_bytes(b"x = (\n")
    (tmp_path / "binary.py").write_bytes(b"\0\xff")
    done = here("migrate", ".")
    assert done.code == 0
    assert done.err == "no training found in 2 files: name the script that is run, as `tfdp migrate train.py` does\n"


def test_paths_that_lead_to_no_source(tfdp, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "broken.py").symlink_to("nowhere.py")
    (tmp_path / "train.ipynb").write_bytes(b'{"cells": ["import tensorflow"]}')
    (tmp_path / "a.txt").write_text("how to train")
    os.mkfifo(tmp_path / "pipe.py")
    done = tfdp(
        "migrate", "empty", "loop.py", "broken.py", "train.ipynb", "a.txt", "pipe.py", "nothing.py", "nothing.py/a.py"
    )
    assert done.code == 2
    for line in (
        "empty: error: no Python file in this directory; name the script or its folder",
        "loop.py: error: Too many levels of symbolic links",
        "broken.py: error: No such file or directory",
        "tfdp: error: train.ipynb is a notebook: make a script of it first, "
        "`jupyter nbconvert --to script train.ipynb`",
        "tfdp: error: a.txt is not a Python script, as its ending .txt says: name a .py file",
        "pipe.py: error: not a regular file; use - to read standard input",
        "nothing.py: error: No such file or directory",
        "8 files failed",
    ):
        assert line + "\n" in done.err


def test_a_read_only_file_is_left_alone(here, tmp_path: Path, script: bytes) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(script)
    path.chmod(0o444)
    done = here("migrate", "train.py")
    assert done.code == 2
    assert "train.py: error: the file is read-only\n" in done.err
    assert path.read_bytes() == script
    assert here("migrate", "--check", "train.py").code == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_a_file_or_folder_without_permission(here, tmp_path: Path, script: bytes) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "train.py").write_bytes(script)
    (tmp_path / "secret.py").write_bytes(script)
    (tmp_path / "secret.py").chmod(0)
    (tmp_path / "closed").chmod(0o555)
    try:
        done = here("migrate", "secret.py", "closed/train.py")
    finally:
        (tmp_path / "closed").chmod(0o755)
    assert done.code == 2
    assert "secret.py: error: Permission denied\n" in done.err
    assert "closed/train.py: error: Permission denied: cannot make a new file in the directory" in done.err
    assert (tmp_path / "closed" / "train.py").read_bytes() == script


def test_an_output_that_cannot_be_written(here, tmp_path: Path, script: bytes) -> None:
    (tmp_path / "train.py").write_bytes(script)
    (tmp_path / "folder").mkdir()
    done = here("migrate", "-o", "nowhere/out.py", "train.py")
    assert done.code == 2
    assert "cannot make a new file in the directory" in done.err
    done = here("migrate", "-o", "folder", "train.py")
    assert done.code == 2
    assert "train.py: error: Is a directory: folder\n" in done.err
    assert here("migrate", "-o", os.devnull, "train.py").code == 0
    assert (tmp_path / "train.py").read_bytes() == script


def test_a_name_that_steers_the_terminal_is_escaped(tfdp, tmp_path: Path, refused: bytes) -> None:
    (tmp_path / "a\x1b[31m\n.py").write_bytes(refused)
    (tmp_path / os.fsdecode(b"b\xff.py")).write_bytes(refused)
    done = tfdp("migrate", ".")
    assert done.code == 1
    assert "./a\\x1b[31m\\n.py:4:1: TFDP" in done.err
    assert "./b\\udcff.py:4:1: TFDP" in done.err
    assert "\x1b" not in done.err
