"""What the ranks wrote into the run's directory: one line for each event, and who may not."""

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

EFFECTS_FILE = "effects.jsonl"
# Native code creates files of this process with these bits off: which rank made a file is then seen by its mode.
READABLE, MARKED = stat.S_IRGRP | stat.S_IROTH, stat.S_IROTH

EffectKind: TypeAlias = Literal["writes", "removes"]


@dataclass(frozen=True)
class Effect:
    """One event. path: relative to the run's directory, or absolute. line: of the script that ran, None where none is
    known. step: the step that was under way."""

    kind: EffectKind
    path: str
    line: int | None
    step: int


@dataclass(frozen=True)
class Effects:
    """What is known about the files.

    text: in words. written: by path, the ranks that wrote it; -1 for a rank that is not known. rank, path, step: the
    first one that should not have been, None where all is well.
    """

    text: str
    written: tuple[tuple[str, tuple[int, ...]], ...] = ()
    rank: int | None = None
    path: str | None = None
    step: int | None = None


def mark_effects(rank: int) -> None:
    """From now on, what this process creates says by its mode whether that was rank 0 or another."""
    inherited = os.umask(0)
    os.umask(inherited | (MARKED if rank else 0))


def markable() -> bool:
    """Whether the user's own mask leaves the bits that `mark` uses."""
    inherited = os.umask(0)
    os.umask(inherited)
    return not inherited & READABLE


def effect_line(effect: Effect) -> bytes:
    """What is appended to `FILE`, in one piece."""
    return (json.dumps(vars(effect)) + "\n").encode()


def read_effects(folder: Path) -> list[Effect]:
    """What the process with this trace folder did."""
    path = folder / EFFECTS_FILE
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    return [Effect(**json.loads(text)) for text in lines if text.endswith("\n")]


def judge_effects_by_rank(
    reference: Sequence[Sequence[Effect]], ranks: Sequence[Sequence[Effect]], steps: int
) -> Effects:
    """What each rank did to files, against the same rank of the reference: up to so many steps, what another rank does
    there. Names that are drawn anew in each run tell nothing.
    """
    theirs = [{(one.kind, one.path) for one in each} for each in reference]
    for rank, done in enumerate(ranks):
        for one in done:
            key = one.kind, one.path
            others = [other for other, known in enumerate(theirs) if key in known]
            if one.step <= steps and others and rank not in others:
                text = f"rank {rank} {one.kind} {one.path}, which rank {others[0]} alone does in the reference"
                return Effects(text, (), rank, one.path, one.step)
    return Effects("each rank wrote what it writes in the reference")


def files_made(scratch: Path, script: Path) -> dict[str, bool | None]:
    """The files that a run left in its directory: made by another rank than 0, as far as their mode tells.

    script: a copy of it, which was there before.
    """
    found: dict[str, bool | None] = {}
    for folder, _, names in os.walk(scratch):
        for name in names:
            path = Path(folder, name)
            if path != script and not path.is_symlink() and path.is_file():
                bits = path.stat().st_mode & READABLE
                found[str(path.relative_to(scratch))] = not bits & MARKED if bits and markable() else None
    return found


def judge_effects(ranks: Sequence[Sequence[Effect]], left: dict[str, bool | None], steps: int) -> Effects:
    """Whether one process at most wrote each file, and that was rank 0 or wrote a file of its own.

    left: what `made` found; native code may have written without an event.
    """
    written: dict[str, dict[int, None]] = {}
    for rank, effects in enumerate(ranks):
        for one in effects:
            if one.kind == "writes":
                written.setdefault(one.path, {})[rank] = None
    for path, other in left.items():
        if path not in written and not any(path.startswith(known) for known in written):
            written[path] = {} if other is None else {1 if other and len(ranks) == 2 else -1 if other else 0: None}
    kept = (path for path in written if len(written[path]) > 1 or any(name.startswith(path) for name in left))
    table = tuple((path, tuple(sorted(written[path]))) for path in sorted(kept))
    wrong = next(_wrong(ranks, left, written), None)
    if wrong is None:
        return Effects(_fine(table, steps), table)
    rank, path, kind, number, step = wrong
    place = f" (line {number} of the migrated script)" if number else ""
    who = f"rank {rank}" if rank >= 0 else "another rank than 0"
    too = ", as rank 0 does" if kind == "writes" and 0 in dict(table).get(path, ()) else ""
    text = f"step {step}, {who} {kind} {path}{too}{place}; let rank 0 alone do it, or use dp.rank_path"
    return Effects(text, table, rank if rank >= 0 else None, path, step)


def _wrong(
    ranks: Sequence[Sequence[Effect]], left: dict[str, bool | None], written: dict[str, dict[int, None]]
) -> Iterator[tuple[int, str, EffectKind, int | None, int]]:
    """Rank, path, kind, line and step of what should not be, earliest first."""
    mine = {one.path for one in ranks[0] if one.kind == "writes"}
    events = [(one.step, rank, one) for rank, effects in enumerate(ranks) for one in effects if rank]
    for step, rank, one in sorted(events, key=lambda event: event[:2]):
        own = _own(one.path, rank, len(ranks), mine)
        passing = one.path not in left and list(written.get(one.path, ())) == [rank]
        if not own and not (passing and _removed(ranks[rank], one.path)):
            yield rank, one.path, one.kind, one.line, step
    announced = {one.path for effects in ranks for one in effects}
    for path, found in sorted(written.items()):
        own = any(_own(path, rank, len(ranks), set(left)) for rank in range(1, len(ranks)))
        if path not in announced and set(found) & {1, -1} and not own:
            yield next(iter(found)), path, "writes", None, 0


def _removed(effects: Sequence[Effect], path: str) -> bool:
    return any(one.path == path and one.kind == "removes" for one in effects)


def _own(path: str, rank: int, size: int, others: set[str]) -> bool:
    """Whether the path is of this rank alone: as `dp.rank_path` makes it, or rank 0 has one with its own number."""
    if re.search(rf"-{rank}-of-{size}(?!\d)", path):
        return True
    numbers = re.finditer(rf"(?<!\d){rank}(?!\d)", path)
    return path not in others and any(f"{path[: found.start()]}0{path[found.end() :]}" in others for found in numbers)


def _fine(table: Sequence[tuple[str, tuple[int, ...]]], steps: int) -> str:
    if not table:
        return f"no rank wrote a file in these {steps} steps"
    by_root = sum(found == (0,) for _, found in table)
    rest = len(table) - by_root
    others = f", {rest} by the ranks they belong to" if rest else ""
    count = f"{len(table)} files" if len(table) > 1 else "one file"
    return f"{count} written in these {steps} steps: {by_root} by rank 0{others}"
