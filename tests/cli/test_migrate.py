"""`tfdp migrate` on real scripts: every way to get the result gives the same bytes."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

VARIANTS = {
    "as it is": lambda data: data,
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "no final newline": lambda data: data.rstrip(b"\n"),
    "crlf, no final newline": lambda data: data.rstrip(b"\n").replace(b"\n", b"\r\n"),
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "latin-1": lambda data: b"# -*- coding: latin-1 -*-\n# entra\xeenement\n" + data,
    "utf-8": lambda data: "# 学習 naïve\n".encode() + data,
}


def test_in_place_once_and_never_again(tfdp, tmp_path: Path, original: bytes) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(original)
    path.chmod(0o755)
    first = tfdp("migrate", "train.py")
    migrated = path.read_bytes()
    assert (first.code, first.out) == (0, b"")
    assert "train.py: migrated\n1 file migrated\n" in first.err
    assert b"dp.init(" in migrated
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    second = tfdp("migrate", "train.py")
    assert (second.code, second.out, second.err) == (0, b"", "unchanged: migrated already\n")
    assert path.read_bytes() == migrated
    assert [p.name for p in tmp_path.iterdir()] == ["train.py"]


def test_a_backup_keeps_the_original_and_is_never_overwritten(here, tmp_path: Path, script: bytes) -> None:
    path, kept = tmp_path / "train.py", tmp_path / "train.py.orig"
    path.write_bytes(script)
    path.chmod(0o755)
    done = here("migrate", "--backup", "train.py")
    assert (done.code, "train.py: migrated, original kept in train.py.orig\n" in done.err) == (0, True)
    assert (kept.read_bytes(), stat.S_IMODE(kept.stat().st_mode)) == (script, 0o755)
    migrated = path.read_bytes()
    assert here("migrate", "--backup", "train.py").code == 0, "there is nothing to do, and nothing to keep"
    path.write_bytes(script)
    assert here("migrate", "--backup", "train.py").code == 0, "the same text is kept already"
    assert path.read_bytes() == migrated
    path.write_bytes(other := b"# another\n" + script)
    done = here("migrate", "--backup", "train.py")
    assert (done.code, path.read_bytes(), kept.read_bytes()) == (2, other, script)
    assert "train.py.orig holds another text, and a backup is never overwritten: move it away" in done.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.py", "train.py.orig"]
    for wrong in (["--diff"], ["--check"], ["-o", "other.py"]):
        assert here("migrate", "--backup", "train.py", *wrong).code == 2


def test_each_message_names_its_place_in_the_original(here, tmp_path: Path, script: bytes) -> None:
    (tmp_path / "train.py").write_bytes(script)
    shown = here("migrate", "--check", "--shard", "input", "train.py").err
    said = [line.split(" ")[0] for line in shown.splitlines() if " TFDP" in line]
    places = [[int(number) for number in place.rstrip(":").split(":")[1:]] for place in said]
    assert places == sorted(places)
    tape = next(i for i, line in enumerate(script.splitlines(), 1) if b"tape.gradient(" in line)
    assert tape in [line for line, _ in places]


@pytest.mark.parametrize("flag", ["--check", "--diff"])
def test_check_and_diff_write_nothing_and_exit_with_1(here, tmp_path: Path, original: bytes, flag: str) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(original)
    before = path.stat()
    done = here("migrate", flag, "train.py")
    after = path.stat()
    assert done.code == 1
    assert bool(done.out) == (flag == "--diff")
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert path.read_bytes() == original
    assert "train.py: would be changed\n1 file would change\n" in done.err
    here("migrate", "train.py")
    done = here("migrate", flag, "train.py")
    assert (done.code, done.out, done.err) == (0, b"", "unchanged: migrated already\n")


@pytest.mark.long(keeps=12)
@pytest.mark.parametrize("batch", ["per-worker", "global"])
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_every_way_gives_the_same_bytes(here, tmp_path: Path, original: bytes, variant, batch: str) -> None:
    source = variant(original)
    in_place = tmp_path / "in_place.py"
    in_place.write_bytes(source)
    assert here("migrate", "--batch", batch, "in_place.py").code == 0
    expected = in_place.read_bytes()
    assert expected != source

    done = here("migrate", "--batch", batch, "-", stdin=source)
    assert (done.code, done.out) == (0, expected)

    patched = tmp_path / "patched.py"
    patched.write_bytes(source)
    done = here("migrate", "--batch", batch, "-o", "out.py", "patched.py")
    assert (done.code, done.out) == (0, b"")
    assert (tmp_path / "out.py").read_bytes() == expected
    assert patched.read_bytes() == source

    if shutil.which("git"):
        diff = here("migrate", "--batch", batch, "--diff", "patched.py").out
        subprocess.run(["git", "apply", "-"], input=diff, cwd=tmp_path, check=True)
        assert patched.read_bytes() == expected


def test_batch_modes_differ(here, script: bytes) -> None:
    def after(*options: str) -> bytes:
        out: bytes = here("migrate", *options, "-", stdin=script).out
        return out

    assert after() == after("--batch", "global")
    assert b"dp.init(shard_calls=True)" in after()
    assert b"dp.scale_lr(" not in after()
    widened = after("--batch", "per-worker")
    assert b"dp.scale_lr(" in widened
    assert b"dp.global_batch_size(" in widened
    split = after("--shard", "input", "--batch", "global")
    assert b"dp.scale_lr(" not in split
    assert b"dp.local_batch_size(" in split
    assert b"dp.scale_lr(" in after("--shard", "input")


def test_a_refused_file_is_left_alone(here, tmp_path: Path, refused: bytes) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(refused)
    for args in (["train.py"], ["--check", "train.py"], ["--diff", "train.py"], ["-o", "out.py", "train.py"]):
        done = here("migrate", *args)
        assert (done.code, done.out) == (1, b"")
        assert "train.py:4:1: TFDP" in done.err
        assert "\n    next step: " in done.err
        assert "train.py: not written: " in done.err
        assert done.err.endswith("1 file refused\n")
    assert path.read_bytes() == refused
    assert [p.name for p in tmp_path.iterdir()] == ["train.py"]
    done = here("migrate", "-", stdin=refused)
    assert (done.code, done.out) == (1, b"")
    assert "<stdin>:4:1: TFDP" in done.err


@pytest.mark.parametrize(
    "data", [b"", b"print('hello')\n", b"import torch\n", b"# tensorflow\nimport os\n", b"import tensorflow\n"]
)
def test_a_file_that_trains_nothing_is_passed_over(here, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.py").write_bytes(data)
    for flags in ([], ["--check"], ["--diff"]):
        done = here("migrate", *flags, "a.py")
        assert (done.code, done.out, done.err) == (0, b"", "no training found in 1 file\n")
    assert (tmp_path / "a.py").read_bytes() == data
    assert here("migrate", "-v", "a.py").err == "a.py: no training found\nno training found in 1 file\n"
    assert here("migrate", "-", stdin=data).out == data


def test_one_bad_file_does_not_stop_the_others(here, tmp_path: Path, script: bytes, refused: bytes) -> None:
    folder = tmp_path / "scripts"
    (folder / "venv").mkdir(parents=True)
    (folder / "a_broken.py").write_bytes(b"import tensorflow\nx.fit(\n")
    (folder / "b_refused.py").write_bytes(refused)
    (folder / "c_other.py").write_bytes(b"import os\n")
    (folder / "d_train.py").write_bytes(script)
    (folder / "venv" / "train.py").write_bytes(script)
    done = here("migrate", "scripts", "missing.py", "scripts/d_train.py")
    assert done.code == 2
    assert "scripts/a_broken.py:2:6: error: this is not valid Python" in done.err
    assert "missing.py: error: No such file or directory\n" in done.err
    assert done.err.endswith("1 file migrated, 1 refused, 2 failed, 1 without training\n")
    assert b"dp.init(shard_calls=True)" in (folder / "d_train.py").read_bytes()
    assert (folder / "venv" / "train.py").read_bytes() == script
    (folder / "a_broken.py").unlink()
    assert here("migrate", "scripts").code == 1
    (folder / "b_refused.py").unlink()
    assert here("migrate", "scripts").code == 0


def test_the_diff_of_several_files_applies(tfdp, tmp_path: Path, script: bytes) -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    names = ["a.py", "with space.py", "é.py", "sub/b.py"]
    (tmp_path / "sub").mkdir()
    for name in names:
        (tmp_path / name).write_bytes(script)
    done = tfdp("migrate", "--diff", ".")
    assert done.code == 1
    subprocess.run(["git", "apply", "-"], input=done.out, cwd=tmp_path, check=True)
    assert {(tmp_path / name).read_bytes() for name in names} == {tfdp("migrate", "-", stdin=script).out}


def test_output_may_be_the_input_itself(here, tmp_path: Path, script: bytes) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(script)
    assert here("migrate", "-o", "./train.py", "train.py", "train.py").code == 0
    assert b"dp.init(shard_calls=True)" in path.read_bytes()


def test_output_of_an_unchanged_file_is_a_copy_with_its_mode(here, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"import os\n")
    (tmp_path / "a.py").chmod(0o755)
    done = here("migrate", "-o", "b.py", "a.py")
    assert (done.code, done.err) == (0, "a.py: no training found, written to b.py\nno training found in 1 file\n")
    assert (tmp_path / "b.py").read_bytes() == b"import os\n"
    assert (tmp_path / "b.py").stat().st_mode & 0o100


def test_output_to_stdout_and_from_stdin_to_a_file(here, tmp_path: Path, script: bytes) -> None:
    (tmp_path / "train.py").write_bytes(script)
    to_stdout = here("migrate", "-o", "-", "train.py")
    assert to_stdout.code == 0
    assert here("migrate", "-o", "out.py", "-", stdin=script).code == 0
    assert (tmp_path / "out.py").read_bytes() == to_stdout.out
    assert (tmp_path / "train.py").read_bytes() == script


def test_a_link_stays_a_link(here, tmp_path: Path, script: bytes) -> None:
    (tmp_path / "real.py").write_bytes(script)
    (tmp_path / "link.py").symlink_to("real.py")
    assert here("migrate", "link.py").code == 0
    assert (tmp_path / "link.py").is_symlink()
    assert b"dp.init(shard_calls=True)" in (tmp_path / "real.py").read_bytes()


CLIENT = """
class Client:
    def __init__(self, model, x, y):
        self.model, self.data = model, (x, y)

    def edge_train(self, **options):
        return self.model.fit(*self.data, **options)
"""
MAIN = """
import keras
import numpy as np
from client import Client

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
Client(model, np.ones([8, 3]), np.ones([8, 1])).edge_train(epochs=2, verbose=0)
"""


def test_a_script_that_is_named_may_train_by_what_is_not_seen(here, tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(CLIENT)
    main = tmp_path / "main.py"
    main.write_text(MAIN)
    done = here("migrate", ".")
    assert done.err == "no training found in 2 files: name the script that is run, as `tfdp migrate train.py` does\n"
    assert here("migrate", "--check", "main.py").code == 0
    assert here("migrate", "--batch", "per-worker", "main.py").code == 1
    assert main.read_text() == MAIN
    done = here("migrate", "main.py")
    assert (done.code, "main.py: sharded calls:" in done.err) == (0, True)
    assert "; it is not seen what trains here: what does is divided when it runs" in done.err
    assert "dp.init(shard_calls=True)" in main.read_text()
    assert here("migrate", "-v", "main.py").err.endswith("unchanged: migrated already\n")
    assert here("migrate", "client.py").err == "no training found in 1 file\n"
    main.write_text("from build import model, x, y\n\nmodel.fit(x, y)\n")
    (tmp_path / "build.py").write_text("import keras\n")
    assert here("migrate", "main.py").code == 0
    assert "dp.init(shard_calls=True)" in main.read_text()
    for other in (
        "import tensorflow as tf\nfrom client import Client\n",
        "import sklearn\nfrom client import Client\nClient()\n",
    ):
        main.write_text(other)
        assert here("migrate", "main.py").err == "no training found in 1 file\n"
