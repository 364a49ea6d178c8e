"""Backups on disk: one file each, there as a whole or not at all."""

from __future__ import annotations

import contextlib
import filecmp
import glob
import json
import os
import pathlib
import pickle
import re
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

FOLDER = "TFDP_BACKUPS"  # where they are; set by `tfdp run --max-restarts`
_NAME = re.compile(r"fit-(\d+)\.epoch-(\d+)(\.end)?\.npz$")
_LOOP = re.compile(r"loop\.save-(\d+)\.npz$")
_ABOUT, _SAVES, _FILES = "about", "loop.saves", "loop.files"
_STEPS, _FIRST_STEPS = "loop.steps", "loop.first-steps"
_OF_FOLDER = "checkpoint"  # in which TensorFlow notes what checkpoints a folder has


class Backup(NamedTuple):
    """The end of an epoch of a fit, or with `over` that of the fit.

    values: of variables, by how many had been made before. about: all else, by name.
    """

    fit: int
    epoch: int
    over: bool
    values: dict[int, Any]
    about: dict[str, Any]


class LoopBackup(NamedTuple):
    """What a loop of the script's own can go on from that restores one of the checkpoints at `paths`.

    values: of variables, by how many had been made before. about: all else, by name.
    """

    number: int
    paths: list[str]
    values: dict[int, Any]
    about: dict[str, Any]


class Furthest(NamedTuple):
    """How far a job has come: the last fit, epoch, and whether it was over; how many checkpoints of own loops."""

    fit: tuple[int, int, bool] | None
    loop: int


def write(folder: pathlib.Path, backup: Backup) -> None:
    """Keep a backup, and none of the same fit that is older. Raises OSError."""
    name = f"fit-{backup.fit}.epoch-{backup.epoch}{'.end' if backup.over else ''}.npz"
    older = [path for path in folder.iterdir() if (found := _place(path)) is not None and found[0] == backup.fit]
    _write(folder, name, older, backup.values, backup.about)


def _write(
    folder: pathlib.Path, name: str, older: list[pathlib.Path], values: Mapping[int, Any], about: dict[str, Any]
) -> None:
    import numpy as np  # which a launcher need not have waited for

    arrays, kinds = {}, {}
    for ordinal, value in values.items():
        kinds[ordinal] = value.dtype, value.shape
        arrays[str(ordinal)] = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)  # of any dtype
    arrays[_ABOUT] = np.frombuffer(pickle.dumps((kinds, about)), np.uint8)
    with _as_a_whole(folder / name) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    _sync(folder)
    for path in older:
        if path.name != name:
            path.unlink()


@contextlib.contextmanager
def _as_a_whole(path: pathlib.Path) -> Iterator[BinaryIO]:
    """A file to be written in the block, which is there after it, or as it was."""
    unfinished = path.with_name(f".{path.name}.tfdp")
    with unfinished.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def read(folder: pathlib.Path, fit: int) -> Backup | None:
    """The last backup of a fit, None where there is none. Raises OSError and ValueError where it is damaged."""
    found = [(place[1:], path) for path in folder.iterdir() if (place := _place(path)) is not None and place[0] == fit]
    if not found:
        return None
    (epoch, over), path = max(found)
    return Backup(fit, epoch, over, *_read(path))


def _read(path: pathlib.Path) -> tuple[dict[int, Any], dict[str, Any]]:
    import numpy as np

    with np.load(path) as arrays:  # the format's checksums are compared
        kinds, about = pickle.loads(arrays[_ABOUT].tobytes())
        values = {
            ordinal: np.frombuffer(arrays[str(ordinal)].tobytes(), dtype).reshape(shape)
            for ordinal, (dtype, shape) in kinds.items()
        }
    return values, about


def write_loop(folder: pathlib.Path, backup: LoopBackup) -> None:
    """Keep a backup, and the script's own files of the checkpoint, and none that are older. Raises OSError."""
    for path in backup.paths:
        if not os.path.isfile(f"{path}.index"):
            raise FileNotFoundError(f"{path}.index is no file of this host")
    number, files = backup.number, folder / f"{_FILES}-{backup.number}"
    shutil.rmtree(files, ignore_errors=True)  # of a process that was ended here
    files.mkdir()
    names = {str(place): path for place, path in enumerate(_files_of(backup.paths))}
    for name, path in names.items():
        shutil.copyfile(path, files / name)
    (files / "names.json").write_text(json.dumps(names))
    older = [path for path in folder.iterdir() if _LOOP.match(path.name)]
    _write(folder, f"loop.save-{number}.npz", older, backup.values, {**backup.about, "paths": backup.paths})
    for other in folder.glob(f"{_FILES}-*"):
        if other != files:
            shutil.rmtree(other, ignore_errors=True)
    for other in folder.glob(f"{_STEPS}-*"):
        other.unlink()


def read_loop(folder: pathlib.Path) -> LoopBackup | None:
    """The last, None where there is none. Raises OSError and ValueError where it is damaged."""
    number = furthest_loop(folder)
    if not number:
        return None
    values, about = _read(folder / f"loop.save-{number}.npz")
    return LoopBackup(number, about["paths"], values, about)


def is_for_good(number: int) -> bool:
    """Whether what was noted after so many steps outlasts the next backup: it is a power of two."""
    return number & (number - 1) == 0


def note_step(folder: pathlib.Path, backup: int, number: int, variables: dict[Any, int]) -> None:
    """What the variables were after so many steps; `backup` is the number of the last one of a loop."""
    name = _FIRST_STEPS if is_for_good(number) else f"{_STEPS}-{backup}"
    with (folder / name).open("ab") as file:
        pickle.dump((number, variables), file)


def steps(folder: pathlib.Path) -> dict[int, dict[Any, int]]:
    """All of that, by the number of the steps."""
    found = {}
    for name in (_FIRST_STEPS, f"{_STEPS}-{furthest_loop(folder)}"):
        path = folder / name
        with contextlib.suppress(FileNotFoundError, EOFError, pickle.UnpicklingError), path.open("rb") as file:
            while True:  # the last may not be whole
                number, variables = pickle.load(file)
                found[number] = variables
    return found


def note_save(folder: pathlib.Path, path: str) -> None:
    """A checkpoint is saved there, from which a loop can go on once a backup of it is kept."""
    with (folder / _SAVES).open("a") as file:
        file.write(json.dumps(path) + "\n")


def saves(folder: pathlib.Path) -> set[str]:
    """Where a process that has ended has saved checkpoints."""
    path = folder / f"{_SAVES}.before"
    return {json.loads(line) for line in path.read_text().splitlines()} if path.exists() else set()


def begin_again(folder: pathlib.Path) -> None:
    """Before a job is started again: the script's checkpoints are as they were when the last backup was kept, so that
    it restores that one and none that was saved later, or not wholly. Raises OSError."""
    now, before = folder / _SAVES, folder / f"{_SAVES}.before"
    if now.exists():
        with before.open("a") as file:
            file.write(now.read_text())
        now.unlink()
    files = folder / f"{_FILES}-{furthest_loop(folder)}"
    if not files.exists():
        return
    for name, path in json.loads((files / "names.json").read_text()).items():
        there = pathlib.Path(path)
        if not (there.exists() and filecmp.cmp(files / name, there, shallow=False)):
            with (files / name).open("rb") as wanted, _as_a_whole(there) as file:
                shutil.copyfileobj(wanted, file)


def _files_of(paths: list[str]) -> list[str]:
    """What TensorFlow has written for checkpoints, and what it has noted of their folders."""
    found = [each for path in paths for each in (path, f"{path}.index", *glob.glob(f"{glob.escape(path)}.data-*"))]
    found += sorted({os.path.join(os.path.dirname(path), _OF_FOLDER) for path in paths})
    return [each for each in dict.fromkeys(found) if os.path.isfile(each)]


def write_begun(folder: pathlib.Path, fit: int, begun: Any) -> None:
    """Keep what the state was when a fit began. Raises OSError."""
    with _as_a_whole(folder / f"fit-{fit}.begun") as file:
        pickle.dump(begun, file)


def read_begun(folder: pathlib.Path, fit: int) -> Any:
    """What that was, None where it has not begun before. Raises OSError."""
    path = folder / f"fit-{fit}.begun"
    return pickle.loads(path.read_bytes()) if path.exists() else None


def furthest(folder: pathlib.Path) -> Furthest | None:
    """How far the job has come; None where nothing is kept."""
    fit = max(filter(None, map(_place, folder.iterdir())), default=None)
    loop = furthest_loop(folder)
    return Furthest(fit, loop) if fit is not None or loop else None


def furthest_loop(folder: pathlib.Path) -> int:
    """The number of the last backup of a loop, from 1; 0 where there is none."""
    return max((int(found[1]) for path in folder.iterdir() if (found := _LOOP.match(path.name))), default=0)


def _place(path: pathlib.Path) -> tuple[int, int, bool] | None:
    found = _NAME.match(path.name)
    return (int(found[1]), int(found[2]), found[3] is not None) if found else None


def _sync(folder: pathlib.Path) -> None:
    """Make sure that a name is on the disk, too."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
