"""What became of each file, and the exit code that all of them together mean."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ..engine import Finding
    from ..launch_lines import LaunchLine


class Verdict(enum.Enum):
    """What became of one file: the word for it, and its exit code."""

    CHANGED = ("migrated", 0)
    PARTIAL = ("migrated in part", 1)
    WOULD_CHANGE = ("would change", 1)
    REFUSED = ("refused", 1)
    FAILED = ("failed", 2)
    ALREADY = ("migrated already", 0)
    NO_TRAINING = ("without training", 0)
    UNCHANGED = ("unchanged", 0)

    def __init__(self, word: str, exit_code: int) -> None:
        self.word = word
        self.exit_code = exit_code

    @property
    def leaves_it(self) -> bool:
        """Whether the file is as it was, and there is nothing to do about it."""
        return self in (Verdict.ALREADY, Verdict.NO_TRAINING, Verdict.UNCHANGED)


@dataclass(frozen=True)
class Failure:
    """Why a file could not be read, understood as Python, or written.

    `line` and `column` count from 1; 0: no place. `named`: the reason is a sentence that names the file.
    """

    reason: str
    line: int = 0
    column: int = 0
    trace: str = ""
    named: bool = False


@dataclass(frozen=True)
class Road:
    """How a file is made data-parallel.

    `taken` is empty for a file that does not train; `widened`: a step gets the batches of all workers; `unseen`: it is
    not seen what trains in it.
    """

    taken: Literal["", "input", "calls", "names"] = ""
    widened: bool = False
    unseen: bool = False

    @property
    def said(self) -> str:
        """What is said of the road; empty where it is neither of the two."""
        batch = _WIDENED if self.widened else _KEPT + _ASK * (self.taken == "calls" and not self.unseen)
        road = {"calls": _CALLS, "input": _INPUT}.get(self.taken)
        return f"{road} ({batch}){_UNSEEN * self.unseen}" if road else ""


_INPUT = (
    "sharded input: each worker trains on its share of the records; "
    "a step's loss that the script keeps or prints is of rank 0's share"
)
_CALLS = "sharded calls: every worker runs the whole script, and its own rows of each model call"
_KEPT = "batch and learning rate stay the script's own"
_ASK = "; --batch per-worker asks for N times both"
_WIDENED = "batch and learning rate are N times the script's own, for N workers"
_UNSEEN = "; it is not seen what trains here: what does is divided when it runs"


@dataclass(frozen=True)
class Outcome:
    """One file's result.

    `path` is as the user wrote it; `written_to` where the result is when that is another file; `kept_in` where the
    original is, when it was kept; `diff` the change where it is only to be shown; `road` how it is made data-parallel;
    `launches` the lines that start it by another system.
    """

    path: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    failure: Failure | None = None
    written_to: str = ""
    diff: bytes = b""
    kept_in: str = ""
    road: Road = Road()
    launches: tuple[LaunchLine, ...] = ()


def failed(path: str, failure: Failure) -> Outcome:
    """The outcome of a file that could not be handled."""
    return Outcome(path, Verdict.FAILED, failure=failure)


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0: nothing to do, or done. 1: something would change, or is refused. 2: an error. The worst file wins."""
    return max((verdict.exit_code for verdict in verdicts), default=0)


_NAME_IT = ": name the script that is run, as `tfdp migrate train.py` does"


def summary(verdicts: Iterable[Verdict]) -> str:
    """`2 files migrated, 1 refused`; `unchanged: migrated already`; `no training found in 3 files`."""
    counts = Counter(verdicts)
    total = sum(counts.values())
    of_all = f"{total} file{'' if total == 1 else 's'}"
    if counts[Verdict.NO_TRAINING] == total:
        return f"no training found in {of_all}" + _NAME_IT * (total > 1)
    found = [(verdict, counts[verdict]) for verdict in Verdict if counts[verdict]]
    if not all(verdict.leaves_it for verdict, _ in found):
        return _listed(found)
    if counts[Verdict.UNCHANGED] == total:
        return f"{of_all} unchanged"
    return "unchanged: " + (Verdict.ALREADY.word if total == 1 else _listed(found))


def _listed(found: Iterable[tuple[Verdict, int]]) -> str:
    first, *more = found
    noun = "file" if first[1] == 1 else "files"
    return ", ".join([f"{first[1]} {noun} {first[0].word}", *(f"{count} {verdict.word}" for verdict, count in more)])
