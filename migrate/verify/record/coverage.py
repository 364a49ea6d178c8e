"""How much of a training a proof has seen: how many of its updates, and whether an epoch came to its end.

At the end of an epoch scripts evaluate, save, and decide how to go on: nothing of that is known of a proof that does
not come there. Pure Python, no processes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

COVERAGE_FILE = "coverage.json"
# Where nobody asks for a number of updates: at least the first of these, and for an epoch's end at most the second.
FEWEST, MOST = 20, 200
# For that, too, no more than this is spent: after the fewest updates, and on the records of the reference.
SECONDS, BYTES = 60.0, 200e6


@dataclass
class Pass:
    """One over the data, by a loop of the script's or an epoch of `fit`.

    begun: updates made before it. batches: how many it has in life; None where that is not known, infinite for data
    without an end. ends: it is a loop's, which goes on after it where it is ended early. taken: batches that the script
    is done with; `updates` had been made then. given: those that it got. trains: a gradient is taken of them.
    """

    begun: int
    batches: float | None
    ends: bool = False
    taken: int = 0
    updates: int = 0
    given: int = 0
    trains: bool = False
    over: bool = False

    def done(self, taken: int, updates: int) -> None:
        """The script is done with so many batches, after so many updates."""
        self.taken, self.updates = taken, updates

    def end(self, updates: int) -> None:
        """There are no more."""
        self.taken, self.updates, self.over = max(self.taken, self.given), updates, True

    def length(self, short: int | None = None) -> float | None:
        """In updates, as many for each batch as for those before; None where that is not known. short: batches after
        which it is ended; without it, the length in life."""
        known = [float(each) for each in (short, self.batches) if each is not None]
        if not known:
            return self.updates - self.begun if self.over else None
        if not self.taken or math.isinf(min(known)):
            return math.inf if math.isinf(min(known)) else None
        return round(int(min(known)) * Fraction(self.updates - self.begun, self.taken))


@dataclass
class Passes:
    """The passes of one process so far. fit: of the `fit` under way the updates made before it, and its epochs; None
    outside one. shortens: long passes are ended early; `short`: after so many batches, from the first long one on."""

    all: list[Pass] = field(default_factory=list)
    fit: tuple[int, int] | None = None
    shortens: bool = False
    short: int | None = None

    def begin(self, begun: int, batches: float | None, *, trains: bool = False) -> Pass:
        """Another one begins."""
        self.all.append(Pass(begun, batches, updates=begun, trains=trains))
        return self.all[-1]

    @property
    def training(self) -> list[Pass]:
        """Those that a gradient was taken in."""
        return [one for one in self.all if one.trains]

    def cut(self, one: Pass) -> bool:
        """Whether a loop has had all the batches that it gets in a proof."""
        return self.short is not None and one.trains and one.ends and one.given >= self.short

    def epoch(self, batches: float | None) -> int | None:
        """How many batches an epoch of `fit` gets in a proof that has so many in life; None: all of them."""
        long = batches is not None and MOST < batches < math.inf
        if self.shortens and self.short is None and long and not any(one.over for one in self.training):
            self.short = FEWEST
        return self.short if self.short is not None and (batches is None or batches > self.short) else None

    def enough(self, done: int) -> bool:
        """Whether more than these updates would show no end of an epoch, or one has been gone past already."""
        training = self.training
        if done < FEWEST:
            return False
        if done >= MOST or not training or any(one.over and one.updates < done for one in training):
            return True
        running = [one for one in training if not one.over]
        lengths = [(one, one.length(self.short)) for one in running]
        if not running or any(known is None or one.begun + known < MOST for one, known in lengths):
            return False
        if (
            self.shortens
            and self.short is None
            and all(one.ends and not math.isinf(one.batches or 0) for one in running)
        ):
            self.short = max(one.given for one in running)
            return False
        return True

    def coverage(self, done: int, *, whole: bool) -> Coverage:
        """What `done` compared updates are of it all. whole: the script came to its end by itself."""
        training = self.training
        ends = sum(one.over and (one.updates < done or (whole and one.updates == done)) for one in training)
        known = next((length for one in training if (length := one.length()) is not None), math.inf)
        length = None if math.isinf(known) else int(known)
        total = done if whole and self.short is None else None
        if self.fit is not None and length is not None and not whole:
            begun, epochs = self.fit
            total = begun + epochs * length
        return Coverage(done, total, ends, length, bool(training), whole, self.short)


@dataclass(frozen=True)
class Coverage:
    """updates: compared. total: that the reference makes up to its end, or that of the `fit` in which it was stopped;
    None where that is not known. ends: of epochs, reached and gone past. length: of an epoch, in updates. seen: where
    epochs end can be seen. whole: the script came to its end. short: batches after which each pass over the data was
    ended in both runs, None where none was."""

    updates: int
    total: int | None
    ends: int
    length: int | None
    seen: bool
    whole: bool
    short: int | None = None

    @property
    def text(self) -> str:
        """In words."""
        each = f" ({self.length:,} in an epoch)" if self.length is not None else ""
        if self.whole and self.short is None:
            what = f"all {self.updates:,} updates of the reference, to the script's end"
        elif self.total is not None:
            what = f"{self.updates:,} of {self.total:,} updates up to the end of fit{each}"
        else:
            what = f"{self.updates:,} of an unknown number of updates{each}"
        if not self.seen:
            return f"{what}; where an epoch ends is not seen"
        number = {0: "no epoch end", 1: "one epoch end"}.get(self.ends, f"{self.ends} epoch ends")
        cut = f"; in both runs, each epoch was ended after {self.short} batches" if self.short is not None else ""
        return f"{what}, {number} reached{cut}"


def write_coverage(folder: Path, coverage: Coverage) -> None:
    """Write that of the process with this trace folder."""
    (folder / COVERAGE_FILE).write_text(json.dumps(vars(coverage)), "utf-8")


def read_coverage(folder: Path) -> Coverage | None:
    """What `write_coverage` wrote, None of a process that was killed."""
    path = folder / COVERAGE_FILE
    facts: dict[str, Any] | None = json.loads(path.read_text("utf-8")) if path.exists() else None
    return Coverage(**facts) if facts else None
