"""Traces of a proof's runs written by hand: a reference, and two ranks that share out its examples."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from tfdp.migrate.verify.diagnosis import Cause, diagnose  # noqa: E402
from tfdp.migrate.verify.diagnosis.causes import Diagnosis  # noqa: E402
from tfdp.migrate.verify.judge import compare  # noqa: E402
from tfdp.migrate.verify.record import (  # noqa: E402
    Call,
    Data,
    Header,
    Note,
    Step,
    Trace,
)

W, B, M, LR = "w|3|float32|0", "b|2|float32|0", "w/momentum|3|float32|0", "learning_rate||float32|0"
STEPS, RATE, DECAY = 4, 0.1, 0.9
SITE = "/home/me/train.py:12 (in step)"
# What each rank has of each gradient and loss: they are different, and their mean is the reference's.
SHARES = (1.4, 0.6)


def array(*values: float) -> Any:
    return np.array(values, np.float32)


def gradients(index: int, share: float = 1.0) -> dict[str, Any]:
    """Of a step. The share moves it, and is not a factor of it."""
    shift = array(0.3, 0.7, -0.2) * (share - 1)
    return {W: array(0.5, -1, 2) * (1 + 0.1 * index) + shift, B: array(0.25, -0.5) + shift[:2]}


def step(index: int, share: float = 1.0, own: bool = False, **changes: Any) -> Step:
    """Of SGD, with the mean of the gradients in a slot. `own`: the rank goes on with its own gradient."""
    taken = gradients(index, share if own else 1.0)
    call = Call((2.0 + index) * share, None, False, (W, B), taken, "mean", SITE)
    return updated(index, replace(call, **changes))


def updated(index: int, call: Call, rate: float = RATE, used: Callable[[Any], Any] = lambda gradient: gradient) -> Step:
    """The step that makes its update of `used` of the call's gradients."""
    before = {W: array(1, 2, 3) * (index + 1), B: array(1, 1), M: array(1, 1, 1) * index, LR: np.float32(RATE)}
    use = {key: used(call.gradients[key]) for key in (W, B) if key in call.gradients}
    after = {**before, **{key: before[key] - rate * each for key, each in use.items()}}
    if W in use:
        after[M] = DECAY * before[M] + (1 - DECAY) * use[W]
    return Step(before, (call,), after, closed=True)


class Traces:
    """A reference and two ranks that share out its examples."""

    def __init__(self, folder: Path) -> None:
        self.reference = Trace(folder / "reference")
        self.ranks = [Trace(folder / "rank0"), Trace(folder / "rank1")]
        for trace in (self.reference, *self.ranks):
            trace.folder.mkdir()
        for index in range(STEPS):
            self.reference.write_step(index, step(index, combined=""))
            self.change(index, [step(index, share) for share in SHARES])
        self.reference.write_header(Header("complete"))
        self.reference.write_lock(compare.lock(self.reference, STEPS))
        self.note()

    def note(self, *notes: Note, outcomes: Sequence[str] = ("complete", "complete")) -> None:
        for rank, outcome in zip(self.ranks, outcomes, strict=True):
            rank.write_header(Header(outcome, notes=notes))

    def change(self, index: int, steps: Sequence[Step]) -> None:
        for rank, changed in zip(self.ranks, steps, strict=True):
            rank.write_step(index, changed)

    def all(self, make: Callable[[int, float], Step], start: int = 0) -> None:
        for index in range(start, STEPS):
            self.change(index, [make(index, share) for share in SHARES])

    def compared(self) -> tuple[compare.Comparison, Trace, list[Trace], int]:
        return compare.compared(self.reference, self.ranks, STEPS), self.reference, self.ranks, STEPS

    def diagnosis(self, batch: str = "per-worker", reason: str = "", data: Data | None = None) -> Diagnosis | None:
        found, *rest = self.compared()
        assert found.failure or reason, "the proof does not fail"
        return diagnose(found, *rest, batch=batch, reason=reason, data=data)

    def cause(self, batch: str = "per-worker", data: Data | None = None) -> Cause | None:
        found = self.diagnosis(batch, data=data)
        return found.cause if found else None


def at_rate(index: int, share: float, factor: float) -> Step:
    made = updated(index, step(index, share).calls[0], RATE * factor)
    return replace(made, before={**made.before, LR: np.float32(RATE * factor)})


def without_slots(made: Step) -> Step:
    parts = [{key: value for key, value in part.items() if key in (W, B)} for part in (made.before, made.after)]
    return replace(made, before=parts[0], after=parts[1])


def plain(traces: Traces, factor: float) -> None:
    """SGD without slots, where the rate and the size of the gradient do the same."""
    for index in range(STEPS):
        traces.reference.write_step(index, without_slots(step(index, combined="")))
    traces.reference.write_lock(compare.lock(traces.reference, STEPS))
    traces.all(lambda i, share: without_slots(at_rate(i, share, factor)))
