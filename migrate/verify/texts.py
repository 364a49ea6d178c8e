"""The three texts of a proof: the original, what is migrated of it, and the reference that this must equal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ...rules._base import AS_USUAL, Policy, Road
from .. import files, originals
from ..applying import EngineError
from ..engine import Migration, migrate, single
from ..originals import Original
from .could_not_run import CouldNotRun
from .recording import Batch

# How a script whose input is sharded says that its batch is the job's, and one whose calls are that it is not.
_GLOBAL = (b"local_batch_size(", b"even_batch_size(")
_WIDENED = (b"global_batch_size(", b"scale_lr(", b"scale_optimizer(", b"local_steps(")
_NO_ORIGINAL = "the script with that system's own imports was not found: name it with --against"
_ITSELF = "none was found: compared with the script itself in one process, in which the runtime changes nothing"


@dataclass(frozen=True)
class Texts:
    """path, against: what the migrated run and the reference call the script. original, migrated, reference: texts.
    found: where the original of a migrated script was found, empty where it was named, or is the script. differs: what
    the tool makes of the one that was found is another script than the migrated one. road: of the migration. batch: the
    mode in which it was made.
    """

    path: str
    against: str
    original: bytes
    migrated: bytes
    reference: bytes
    found: str = ""
    differs: bool = False
    road: Road = "input"
    batch: Batch = "per-worker"


def of_original(path: str, size: int, policy: Policy = AS_USUAL) -> Texts:
    """The texts for an original script, which is migrated in memory.

    A script that is migrated already is held against the original that was kept of it, or that git has: the one of
    which the tool makes that script, or the first that trains where there is none. One that shards calls is its own
    reference where there is no original: of one process the runtime changes nothing.

    Without a batch mode in the policy it is what the script was migrated for, or the road's own.

    Raises:
        CouldNotRun: the tool refuses the script, or cannot make a reference of it, which it cannot of a script that is
            migrated already; `path` cannot be read.
    """
    source = _read(path)
    road = road_of(source)
    if road is None:
        migration = migrated(path, source, policy)
        road = migration.road or "input"
        text = reference_of(road, path, source, size, migration.batch, policy)
        return Texts(path, path, source, migration.after, text, road=road, batch=migration.batch)
    mode = mode_of(road, policy.batch, source)
    if (known := _found(path, source, policy if road == "names" else _settled(policy, mode, road))) is not None:
        found, same = known
        text = reference_of(road, found.name, found.source, size, mode, policy)
        return Texts(path, path, found.source, source, text, found.name, not same, road, mode)
    if road == "calls":
        _readable(path, source)
        return Texts(path, path, source, source, source, found=_ITSELF, road=road, batch=mode)
    if road == "names":
        raise CouldNotRun(f"{path}: {_NO_ORIGINAL}")
    after = migrated(path, source, _settled(policy, mode, road)).after
    return Texts(path, path, source, after, reference(path, source, size, mode, policy), batch=mode)


def _settled(policy: Policy, batch: Batch, road: Road) -> Policy:
    """The policy by which a script was migrated, of which road and batch mode are known. Raises CouldNotRun."""
    assert road != "names"  # which has one mode only
    try:
        return replace(policy, batch=batch, shard=road)
    except ValueError as error:
        raise CouldNotRun(f"the script is migrated for --batch {batch}: {error}") from error


def _found(path: str, source: bytes, policy: Policy) -> tuple[Original, bool] | None:
    """The original of a migrated script, and whether the tool makes that script of it."""
    first = None
    for candidate in originals.candidates(path):
        try:
            migration = migrate(candidate.name, candidate.source, policy)
        except (files.UnreadableSource, EngineError):
            continue  # the script was not made of it
        if not migration.trains:
            continue
        if originals.same_program(migration.after, source):
            return candidate, True
        first = first or candidate
    return None if first is None else (first, False)


def of_both(path: str, original: str, size: int, policy: Policy = AS_USUAL) -> Texts:
    """The texts for a migrated script at `path` and the original at `original` that it was made from.

    Raises:
        CouldNotRun: there is no reference of the original, `path` does not use the runtime, or a file cannot be read.
    """
    after = _read(path)
    source = _read(original)
    road = road_of(after)
    if road is None:
        text = "does not import tfdp.runtime, so it is not migrated: leave --against out, and it is migrated in memory"
        raise CouldNotRun(f"{path}: {text}")
    _readable(path, after)
    mode = mode_of(road, policy.batch, after)
    alone = reference_of(road, original, source, size, mode, policy)
    return Texts(path, original, source, after, alone, road=road, batch=mode)


def road_of(migrated_text: bytes) -> Road | None:
    """The road on which a text was migrated, None where it is not."""
    if not originals.imports_runtime(migrated_text):
        return None
    if originals.keeps_names(migrated_text):
        return "names"
    return "calls" if originals.shards_calls(migrated_text) else "input"


def mode(path: str) -> Batch:
    """The batch mode for which the script at `path` was migrated, the usual one where it is not."""
    try:
        text = Path(path).read_bytes()
    except OSError:
        return "per-worker"  # who reads it next says what is wrong with it
    return mode_of(road_of(text) or "input", None, text)


def mode_of(road: Road, asked: Batch | None, text: bytes) -> Batch:
    """The batch mode of a text that is, or is to be, migrated on a road; what is asked for is believed."""
    if road == "calls":
        return asked or ("per-worker" if any(name in text for name in _WIDENED) else "global")
    made = originals.imports_runtime(text) and any(name in text for name in _GLOBAL)
    return asked or ("global" if made else "per-worker")


def migrated(path: str, source: bytes, policy: Policy = AS_USUAL) -> Migration:
    """What the tool makes of a script.

    Raises:
        CouldNotRun: the tool refuses the script; the message has each refusal with its place and next step.
    """
    try:
        migration = migrate(path, source, policy)
    except files.UnreadableSource as error:
        raise CouldNotRun(str(error)) from error
    if migration.refused:
        lines = ["the script cannot be migrated as it is, so there is nothing to compare:"]
        for one in migration.findings:
            if one.refusal:
                lines.append(f"{path}:{one.line}:{one.column}: {one.code} {one.message}")
                lines += [f"    next step: {one.next_step}"] if one.next_step else []
        raise CouldNotRun("\n".join(lines))
    return migration


def reference_of(  # noqa: PLR0917
    road: Road, path: str, source: bytes, size: int, batch: Batch, policy: Policy
) -> bytes:
    """The reference of an original script. With another system's names it is that script. Of sharded calls it is the
    script, as it is, or its one-worker form, if it is distributed already; with the batches of all workers what the
    tool makes of it, whose functions give one process the batch of as many as it stands for.

    Raises:
        CouldNotRun: there is none.
    """
    if road == "input":
        return reference(path, source, size, batch, policy)
    _readable(path, source)
    if road == "names":
        return source
    if batch == "global" or originals.imports_runtime(source):
        return single(path, source).after
    return migrated(path, source, _settled(policy, batch, road)).after


def reference(path: str, source: bytes, size: int, batch: Batch, policy: Policy = AS_USUAL) -> bytes:
    """The reference of an original script for `size` workers.

    Raises:
        CouldNotRun: the facts do not suffice for one.
    """
    from .reference import NoReferenceError
    from .reference import reference as make

    try:
        return make(path, source, size, batch, policy)
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
