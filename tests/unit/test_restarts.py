"""What is kept for workers that are started again, and how often they are; no process is started here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from tfdp.runtime.launch import CommandError, restarts
from tfdp.runtime.restarts import FOLDER, Furthest, folder, furthest
from tfdp.runtime.restarts.folder import Backup, LoopBackup


def backup(fit: int, epoch: int, *, over: bool = False) -> Backup:
    values = {0: np.arange(6, dtype=np.float32).reshape(2, 3), 4: np.int64(epoch)}
    return Backup(fit, epoch, over, values, {"stopped": False})


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    folder.write(tmp_path, backup(0, 3))
    found = folder.read(tmp_path, 0)
    assert found is not None
    assert (found.fit, found.epoch, found.over, found.about) == (0, 3, False, {"stopped": False})
    for ordinal, value in backup(0, 3).values.items():
        assert found.values[ordinal].dtype == value.dtype
        np.testing.assert_array_equal(found.values[ordinal], value)


def test_of_each_fit_the_last_is_kept(tmp_path: Path) -> None:
    for each in (backup(0, 9), backup(0, 10), backup(0, 10, over=True), backup(1, 0)):
        folder.write(tmp_path, each)
        assert furthest(tmp_path) == Furthest((each.fit, each.epoch, each.over), 0)
    assert len(list(tmp_path.iterdir())) == 2
    assert folder.read(tmp_path, 2) is None


def test_one_that_was_not_finished_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write(tmp_path, backup(0, 1))

    def killed(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        folder.write(tmp_path, backup(0, 2))
    assert furthest(tmp_path) == Furthest((0, 1, False), 0)


def test_a_damaged_one_is_an_error_or_harmless(tmp_path: Path) -> None:
    wanted = backup(0, 1)
    folder.write(tmp_path, wanted)
    (path,) = tmp_path.iterdir()
    data, errors = path.read_bytes(), 0
    for place in range(0, len(data), 5):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            found = folder.read(tmp_path, 0)
        except Exception:
            errors += 1
            continue
        assert found is not None
        assert found.about == wanted.about
        assert all((found.values[ordinal] == value).all() for ordinal, value in wanted.values.items())
    assert errors > 50


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("attempts", "starts", "said"),
    [
        ([(0, False, None)], 1, ""),
        ([(9, True, None)], 1, "no epoch of a fit and no tf.train.Checkpoint was kept"),
        ([(9, True, 1), (9, True, None)], 2, "come no further"),
        ([(9, True, 1), (9, True, 2), (9, True, 3)], 3, "started again 2 time(s)"),
        ([(9, True, 1), (0, False, 4)], 2, "go on after epoch 2 of fit 1"),
        ([(130, False, 1)], 1, ""),
    ],
)
def test_a_job_is_started_again_as_long_as_it_comes_further(
    attempts: list[tuple[int, bool, int | None]],
    starts: int,
    said: str,
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = []

    def launch(environ: Mapping[str, str]) -> tuple[int, bool]:
        status, failed, epoch = attempts[len(seen)]
        seen.append(environ[FOLDER])
        assert environ["OTHER"] == "kept"
        assert Path(environ[FOLDER]).parent == here
        if epoch is not None:
            folder.write(Path(environ[FOLDER]), backup(0, epoch))
        return status, failed

    assert restarts.started_again(2, {"OTHER": "kept"}, launch) == attempts[starts - 1][0]
    assert len(seen) == starts
    assert len(set(seen)) == 1
    assert said in capsys.readouterr().err


def test_one_process_and_several_hosts_are_refused() -> None:
    restarts.refuse(0, 1, several_hosts=True)
    restarts.refuse(3, 2, several_hosts=False)
    with pytest.raises(CommandError, match="one host"):
        restarts.refuse(1, 2, several_hosts=True)
    with pytest.raises(CommandError, match="-np 2 or more"):
        restarts.refuse(1, 1, several_hosts=False)


def test_the_scripts_checkpoints_are_as_when_the_last_backup_was_kept(tmp_path: Path) -> None:
    here, own = tmp_path / "kept", tmp_path / "own"
    here.mkdir()
    own.mkdir()

    def save(number: int) -> str:
        (own / "checkpoint").write_text(f"the last is {number}")
        (own / f"ckpt-{number}.index").write_text(f"index {number}")
        (own / f"ckpt-{number}.data-00000-of-00001").write_text(f"data {number}")
        folder.note_save(here, str(own / f"ckpt-{number}"))
        return str(own / f"ckpt-{number}")

    folder.begin_again(here)
    assert folder.saves(here) == set()
    first, second = save(1), save(2)
    folder.write_loop(here, LoopBackup(1, [second], {0: np.float32(3)}, {"steps": 7}))
    assert folder.saves(here) == set()  # of processes that have ended
    third = save(3)
    (own / "ckpt-2.index").write_text("torn")
    (own / "ckpt-2.data-00000-of-00001").unlink()
    folder.begin_again(here)
    assert folder.saves(here) == {first, second, third}
    assert (own / "checkpoint").read_text() == "the last is 2"
    assert (own / "ckpt-2.index").read_text() == "index 2"
    assert (own / "ckpt-2.data-00000-of-00001").read_text() == "data 2"
    assert sorted(path.name for path in own.iterdir() if path.name.startswith(".")) == []
    found = folder.read_loop(here)
    assert found is not None
    assert (found.number, found.paths, found.values, found.about["steps"]) == (1, [second], {0: np.float32(3)}, 7)
    assert furthest(here) == Furthest(None, 1)


def test_of_loops_the_last_backup_is_kept_and_the_steps_since(tmp_path: Path) -> None:
    path = tmp_path / "ckpt"
    (tmp_path / "ckpt.index").write_text("")
    for number in (1, 3, 4):
        folder.note_step(tmp_path, 0, number, {"w": number})
    assert folder.steps(tmp_path) == {1: {"w": 1}, 3: {"w": 3}, 4: {"w": 4}}
    for number in (1, 2):
        folder.write_loop(tmp_path, LoopBackup(number, [str(path)], {}, {}))
        assert len(list(tmp_path.glob("loop.save-*"))) == len(list(tmp_path.glob("loop.files-*"))) == 1
    assert folder.steps(tmp_path) == {1: {"w": 1}, 4: {"w": 4}}
    folder.note_step(tmp_path, 2, 5, {"w": 5})
    with (tmp_path / "loop.steps-2").open("ab") as file:
        file.write(b"\x80\x04")  # torn
    assert folder.steps(tmp_path) == {1: {"w": 1}, 4: {"w": 4}, 5: {"w": 5}}


def test_a_checkpoint_that_is_no_file_here_is_none_to_go_on_from(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file of this host"):
        folder.write_loop(tmp_path, LoopBackup(1, ["gs://bucket/ckpt-1"], {}, {}))
    assert folder.read_loop(tmp_path) is None
