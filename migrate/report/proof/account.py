"""All there is to say about one verification."""

from __future__ import annotations

import enum
import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...verify.proof import FailedRun, Proof

# Of these, what is installed is named: the ways to install TensorFlow, and what computes under it.
_PACKAGES = ("tfdp", "tensorflow", "tensorflow-cpu", "keras", "tf-keras", "numpy")


class Verdict(enum.Enum):
    """The answer: a word for programs, one for people, and the exit code."""

    PROVED = ("proved", "PROVED", 0)
    NOT_PROVED = ("not proved", "NOT PROVED", 1)
    COULD_NOT_COMPARE = ("could not be compared", "COULD NOT BE COMPARED", 2)
    COULD_NOT_DECIDE = ("could not be decided", "COULD NOT BE DECIDED", 2)
    COULD_NOT_RUN = ("could not run", "COULD NOT RUN", 2)

    def __init__(self, word: str, shout: str, exit_code: int) -> None:
        self.word = word
        self.shout = shout
        self.exit_code = exit_code


@dataclass(frozen=True)
class Account:
    """script: as the user named it. against: the original, where that is another file. differs: it was not named, and
    what the tool makes of it is another script. options: what was asked for
    besides, in words by name. proof: None where nothing could be run; `reason` then says why, and `failed_run` how
    the reference or the original failed, if one did. original, migrated: source texts, empty where they were not
    read. seconds: how long it all took. made: date and time, UTC.
    """

    script: str
    against: str | None
    options: Mapping[str, str]
    proof: Proof | None
    reason: str = ""
    original: bytes = b""
    migrated: bytes = b""
    reference: bytes = b""
    seconds: float = 0.0
    made: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    failed_run: FailedRun | None = None
    differs: bool = False

    @property
    def compared_with(self) -> str:
        """The original, in words; empty where it is the script."""
        if not (self.against and self.differs):
            return self.against or ""
        other = f"its migration differs from {self.script}"
        return f"{self.against}; {other}: what is compared is {self.script} against {self.against}"

    @property
    def verdict(self) -> Verdict:
        """The answer."""
        if self.proof is None or self.proof.timed_out or self.proof.randomness_kept:
            return Verdict.COULD_NOT_RUN
        if self.proof.could_not_compare:
            return Verdict.COULD_NOT_COMPARE
        if self.proof.is_undecided:
            return Verdict.COULD_NOT_DECIDE
        return Verdict.PROVED if self.proof.proved else Verdict.NOT_PROVED

    @property
    def why(self) -> str:
        """Why nothing is proved, in words; empty where it is."""
        return self.reason if self.proof is None else self.proof.reason

    @property
    def failed(self) -> FailedRun | None:
        """The run that failed by itself, of whichever script; None where none did."""
        return self.failed_run if self.proof is None else self.proof.failed_run


def versions() -> dict[str, str]:
    """What this proof runs on, by name, of what can be told without importing it."""
    found = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["platform"] = f"{platform.system()} {platform.machine()}"
    return found
