"""Backups on disk: one file each, there as a whole or not at all."""

from __future__ import annotations

import os
import pathlib
import pickle
import re
from typing import Any, NamedTuple

FOLDER = "TFDP_BACKUPS"  # where they are; set by `tfdp run --max-restarts`
_NAME = re.compile(r"fit-(\d+)\.epoch-(\d+)(\.end)?\.npz$")
_ABOUT = "about"


class Backup(NamedTuple):
    """The end of an epoch of a fit, or with `over` that of the fit.

    values: of variables, by how many had been made before. about: all else, by name.
    """

    fit: int
    epoch: int
    over: bool
    values: dict[int, Any]
    about: dict[str, Any]


def write(folder: pathlib.Path, backup: Backup) -> None:
    """Keep a backup, and none of the same fit that is older. Raises OSError."""
    import numpy as np  # which a launcher need not have waited for

    name = f"fit-{backup.fit}.epoch-{backup.epoch}{'.end' if backup.over else ''}.npz"
    arrays, kinds = {}, {}
    for ordinal, value in backup.values.items():
        kinds[ordinal] = value.dtype, value.shape
        arrays[str(ordinal)] = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)  # of any dtype
    arrays[_ABOUT] = np.frombuffer(pickle.dumps((kinds, backup.about)), np.uint8)
    unfinished = folder / f".{name}"
    with unfinished.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
        file.flush()
        os.fsync(file.fileno())
    older = [path for path in folder.iterdir() if (found := _place(path)) is not None and found[0] == backup.fit]
    unfinished.replace(folder / name)
    _sync(folder)
    for path in older:
        if path.name != name:
            path.unlink()


def read(folder: pathlib.Path, fit: int) -> Backup | None:
    """The last backup of a fit, None where there is none. Raises OSError and ValueError where it is damaged."""
    import numpy as np

    found = [(place[1:], path) for path in folder.iterdir() if (place := _place(path)) is not None and place[0] == fit]
    if not found:
        return None
    (epoch, over), path = max(found)
    with np.load(path) as arrays:  # the format's checksums are compared
        kinds, about = pickle.loads(arrays[_ABOUT].tobytes())
        values = {
            ordinal: np.frombuffer(arrays[str(ordinal)].tobytes(), dtype).reshape(shape)
            for ordinal, (dtype, shape) in kinds.items()
        }
    return Backup(fit, epoch, over, values, about)


def write_begun(folder: pathlib.Path, fit: int, begun: Any) -> None:
    """Keep what the state was when a fit began. Raises OSError."""
    unfinished = folder / f".fit-{fit}.begun"
    with unfinished.open("wb") as file:
        pickle.dump(begun, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(folder / f"fit-{fit}.begun")


def read_begun(folder: pathlib.Path, fit: int) -> Any:
    """What that was, None where it has not begun before. Raises OSError."""
    path = folder / f"fit-{fit}.begun"
    return pickle.loads(path.read_bytes()) if path.exists() else None


def furthest(folder: pathlib.Path) -> tuple[int, int, bool] | None:
    """The fit and the epoch of the last backup, and whether the fit was over."""
    return max(filter(None, map(_place, folder.iterdir())), default=None)


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
