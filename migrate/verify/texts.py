"""The three texts of a proof: the original, what is migrated of it, and the reference that this must equal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...rules._base import LINEAR, Scaling, Shard
from .. import files, originals
from ..applying import EngineError
from ..engine import migrate
from ..originals import Original
from .recording import Batch, CouldNotRun

# How a migrated script says that its batch is the job's, not one worker's.
_GLOBAL = (b"local_batch_size(", b"even_batch_size(")


@dataclass(frozen=True)
class Texts:
    """path, against: what the migrated run and the reference call the script. original, migrated, reference: texts.
    found: where the original of a migrated script was found, empty where it was named, or is the script. differs: what
    the tool makes of the one that was found is another script than the migrated one.
    """

    path: str
    against: str
    original: bytes
    migrated: bytes
    reference: bytes
    found: str = ""
    differs: bool = False


def of_original(path: str, size: int, batch: Batch, scaling: Scaling = LINEAR, shard: Shard = "auto") -> Texts:
    """The texts for an original script, which is migrated in memory.

    A script that is migrated already is held against the original that was kept of it, or that git has: the one of
    which the tool makes that script, or the first that trains where there is none.

    Raises:
        CouldNotRun: the tool refuses the script, or cannot make a reference of it, which it cannot of a script that is
            migrated already; `path` cannot be read.
    """
    source = _read(path)
    if originals.imports_runtime(source) and (known := _found(path, source, batch, scaling, shard)) is not None:
        found, same = known
        text = reference(found.name, found.source, size, batch, scaling)
        return Texts(path, path, found.source, source, text, found=found.name, differs=not same)
    after = migrated(path, source, batch, scaling, shard)
    return Texts(path, path, source, after, reference(path, source, size, batch, scaling))


def _found(path: str, source: bytes, batch: Batch, scaling: Scaling, shard: Shard) -> tuple[Original, bool] | None:
    """The original of a migrated script, and whether the tool makes that script of it."""
    first = None
    for candidate in originals.candidates(path):
        try:
            migration = migrate(candidate.name, candidate.source, batch, scaling=scaling, shard=shard)
        except (files.UnreadableSource, EngineError):
            continue  # the script was not made of it
        if not migration.trains:
            continue
        if originals.same_program(migration.after, source):
            return candidate, True
        first = first or candidate
    return None if first is None else (first, False)


def of_both(path: str, original: str, size: int, batch: Batch, scaling: Scaling = LINEAR) -> Texts:
    """The texts for a migrated script at `path` and the original at `original` that it was made from.

    Raises:
        CouldNotRun: there is no reference of the original, `path` does not use the runtime, or a file cannot be read.
    """
    after = _read(path)
    source = _read(original)
    if not originals.imports_runtime(after):
        text = "does not import tfdp.runtime, so it is not migrated: leave --against out, and it is migrated in memory"
        raise CouldNotRun(f"{path}: {text}")
    _readable(path, after)
    return Texts(path, original, source, after, reference(original, source, size, batch, scaling))


def mode(path: str) -> Batch:
    """The batch mode for which the script at `path` was migrated, the usual one where it is not."""
    try:
        text = Path(path).read_bytes()
    except OSError:
        return "per-worker"  # who reads it next says what is wrong with it
    return "global" if originals.imports_runtime(text) and any(name in text for name in _GLOBAL) else "per-worker"


def migrated(path: str, source: bytes, batch: Batch, scaling: Scaling = LINEAR, shard: Shard = "auto") -> bytes:
    """The migrated text of a script.

    Raises:
        CouldNotRun: the tool refuses the script; the message has each refusal with its place and next step.
    """
    try:
        migration = migrate(path, source, batch, scaling=scaling, shard=shard)
    except files.UnreadableSource as error:
        raise CouldNotRun(str(error)) from error
    if migration.refused:
        lines = ["the script cannot be migrated as it is, so there is nothing to compare:"]
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
