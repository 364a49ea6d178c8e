"""Keras' own callbacks: which of them can go on where others have ended, and with what."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..job import current
from ..keras import is_keras

# What they know is in attributes that are numbers, strings, arrays, and lists and dicts of such.
_RESUMED = (
    *("CSVLogger", "EarlyStopping", "History", "ModelCheckpoint", "ProgbarLogger", "ReduceLROnPlateau"),
    *("TensorBoard", "TerminateOnNaN"),
)
_SCHEDULE = "LearningRateScheduler"
_TABLE, _TABLE_BYTES = "CSVLogger", "_tfdp_bytes"
_PLAIN = (bool, int, float, str, type(None), np.number, np.ndarray)
# What Keras works out of others when they begin, or once: it turns `min_delta` round when it is first compared by.
_WORKED_OUT = frozenset(("append", "append_header", "min_delta", "params", _TABLE_BYTES))

States = list[tuple[str, dict[str, Any]]]


def unknown(callbacks: Sequence[Any]) -> str:
    """Why a `fit` with these cannot go on later, empty where it can."""
    for each in callbacks:
        name = type(each).__name__
        if name == "BackupAndRestore" and is_keras(type(each)):
            return "BackupAndRestore goes on by itself, and not to the last bit: leave it out"
        if not (is_keras(type(each)) and (name in _RESUMED or name == _SCHEDULE)):
            return f"the callback {name} may remember something, or change it, and there is no knowing what"
        if name == _TABLE and each.append:
            return "CSVLogger(append=True) goes on after what is there, whatever that is"
        if name == "ModelCheckpoint" and each.save_freq != "epoch":
            return "ModelCheckpoint saves by the number of batches"
    return ""


def states(callbacks: Sequence[Any]) -> States:
    """What they know now, in their order."""
    return [(type(each).__name__, _known(each)) for each in callbacks]


def settings(callbacks: Sequence[Any]) -> States:
    """The same, without what is in their files by now."""
    return [(name, {n: value for n, value in known.items() if n != _TABLE_BYTES}) for name, known in states(callbacks)]


def _known(callback: Any) -> dict[str, Any]:
    found = {name: value for name, value in vars(callback).items() if _is_plain(value) and name not in _WORKED_OUT}
    if type(callback).__name__ == _TABLE and os.path.isfile(callback.filename):
        with open(callback.filename, "rb") as file:
            found[_TABLE_BYTES] = file.read()
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(key) and _is_plain(each) for key, each in value.items())
    return isinstance(value, _PLAIN)


def put_back(callbacks: Sequence[Any], known: States) -> None:
    """Let callbacks that have just begun know what those of the same kinds knew."""
    for each, (_, values) in zip(callbacks, known, strict=True):
        vars(each).update({name: value for name, value in values.items() if name not in _WORKED_OUT})


@contextlib.contextmanager
def going_on(callbacks: Sequence[Any], known: States) -> Iterator[None]:
    """What they write when they begin in the block goes on where the last epoch that was kept has ended."""
    tables = [(each, values) for each, (name, values) in zip(callbacks, known, strict=True) if name == _TABLE]
    asked = [(each, each.append) for each, _ in tables]
    for each, values in tables:
        if current().topology.rank == 0:  # whose files those of the script are
            with open(each.filename, "wb") as file:
                file.write(values.get(_TABLE_BYTES, b""))
        each.append = True
    try:
        yield
    finally:
        for each, append in asked:
            each.append = append
