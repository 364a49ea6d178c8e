"""The three texts of a proof: the original, what is migrated of it, and the reference that this must equal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...rules._base import LINEAR, Scaling
from .. import files
from .recording import Batch, CouldNotRun

# How a migrated script says that its batch is the job's, not one worker's.
_GLOBAL = ("local_batch_size(", "even_batch_size(")


@dataclass(frozen=True)
class Texts:
    """path, against: what the migrated run and the reference call the script. original, migrated, reference: texts."""

    path: str
    against: str
    original: bytes
    migrated: bytes
    reference: bytes


def of_original(path: str, size: int, batch: Batch, scaling: Scaling = LINEAR) -> Texts:
    """The texts for an original script, which is migrated in memory.

    Raises:
        CouldNotRun: the tool refuses the script, or cannot make a reference of it; `path` cannot be read.
    """
    source = _read(path)
    after = migrated(path, source, batch, scaling)
    return Texts(path, path, source, after, reference(path, source, size, batch, scaling))


def of_both(path: str, original: str, size: int, batch: Batch, scaling: Scaling = LINEAR) -> Texts:
    """The texts for a migrated script at `path` and the original that it was made from.

    Raises:
        CouldNotRun: there is no reference of the original, `path` does not use the runtime, or a file cannot be read.
    """
    after, source = _read(path), _read(original)
    if b"tfdp.runtime" not in after:
        text = "does not import tfdp.runtime, so it is not migrated: leave --against out, and it is migrated in memory"
        raise CouldNotRun(f"{path}: {text}")
    _readable(path, after)
    return Texts(path, original, source, after, reference(original, source, size, batch, scaling))


def mode(path: str) -> Batch:
    """The batch mode for which the script at `path` was migrated."""
    try:
        text = Path(path).read_text("utf-8", "replace")
    except OSError:
        return "per-worker"  # who reads it next says what is wrong with it
    return "global" if any(name in text for name in _GLOBAL) else "per-worker"


def migrated(path: str, source: bytes, batch: Batch, scaling: Scaling = LINEAR) -> bytes:
    """The migrated text of a script.

    Raises:
        CouldNotRun: the tool refuses the script; the message has each refusal with its place and next step.
    """
    from ..engine import migrate

    try:
        migration = migrate(path, source, batch, scaling=scaling)
    except files.UnreadableSource as error:
        raise CouldNotRun(str(error)) from error
    if migration.refused:
        lines = ["the script is not migrated:"]
        for one in migration.findings:
            if one.refusal:
                lines.append(f"{path}:{one.line}:{one.column}: {one.code} {one.message}")
                lines += [f"    next step: {one.next_step}"] if one.next_step else []
        raise CouldNotRun("\n".join(lines))
    return migration.after


def reference(path: str, source: bytes, size: int, batch: Batch, scaling: Scaling = LINEAR) -> bytes:
    """The reference of an original script for `size` workers.

    Raises:
        CouldNotRun: the facts do not suffice for one.
    """
    from .reference import NoReferenceError
    from .reference import reference as make

    try:
        return make(path, source, size, batch, scaling)
    except (NoReferenceError, files.UnreadableSource) as error:
        raise CouldNotRun(str(error)) from error


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CouldNotRun(f"{path}: {error.strerror or error}") from error


def _readable(path: str, source: bytes) -> None:
    try:
        files.decode(path, source)
    except files.UnreadableSource as error:
        raise CouldNotRun(str(error)) from error
