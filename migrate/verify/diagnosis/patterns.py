"""The step in which a proof failed, in the figures from which its cause is told. Pure NumPy, no processes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..judge import GRADIENT, LOSS, Comparison, Failure, Point
from ..record import Array, Arrays, Call, Data, Header, Lock, Step, Trace

# A constant factor is met by rounding only: a thousandth is wide for it, and narrow for anything else.
CONSTANT = 1e-3
# Dtypes of less precision than float32 round so much; twice and half can still be told apart.
COARSE = 0.03


@dataclass(frozen=True)
class Likeness:
    """Arrays as multiples of others: by which factor, and the norm of what remains as a part of the whole."""

    factor: float
    rest: float

    def is_(self, factor: float, tolerance: float = CONSTANT) -> bool:
        """Whether they are `factor` times the others, but for rounding."""
        return abs(self.factor - factor) <= tolerance * abs(factor) and self.rest <= tolerance


NOTHING = Likeness(math.nan, math.inf)


def likeness(pairs: Iterable[tuple[Array, Array]]) -> Likeness:
    """The first of each pair as a multiple of the second, all pairs with one factor."""
    wide = [(ours.astype(np.float64), theirs.astype(np.float64)) for ours, theirs in pairs]
    if not wide or not all(np.isfinite(array).all() for pair in wide for array in pair):
        return NOTHING
    square = sum(float(np.vdot(theirs, theirs)) for _, theirs in wide)
    if not square:
        return NOTHING
    factor = sum(float(np.vdot(ours, theirs)) for ours, theirs in wide) / square
    rest = math.hypot(*(float(np.linalg.norm(ours - factor * theirs)) for ours, theirs in wide))
    return Likeness(factor, rest / max(abs(factor) * math.sqrt(square), 1e-300))


@dataclass(frozen=True)
class StepGradient:
    """One gradient of the failing step: the reference's, and each rank's."""

    expected: Call
    calls: tuple[Call, ...]

    @property
    def loss(self) -> float:
        """The mean loss of the ranks over the reference's; 1 where both are zero."""
        mean = sum(call.loss for call in self.calls) / len(self.calls)
        return 1.0 if mean == self.expected.loss else mean / (self.expected.loss or 1e-300)

    @property
    def same_losses(self) -> bool:
        """Whether all ranks computed the same loss."""
        first, *others = (call.loss for call in self.calls)
        return all(abs(other - first) <= LOSS * abs(first) for other in others)

    @property
    def same_gradients(self) -> bool:
        """Whether all ranks went on with the same gradient."""
        first = self.calls[0].gradients
        return all(_equal(call.gradients, first, first) for call in self.calls[1:])

    @property
    def combined(self) -> str:
        """How the tape combined the ranks' gradients."""
        return self.calls[0].combined

    def gradient(self, keys: Iterable[str] | None = None) -> Likeness:
        """The mean of the ranks' gradients, as a multiple of the reference's."""
        return likeness(self._pairs(self.expected.gradients if keys is None else keys))

    def exact(self, factor: float) -> tuple[str, ...]:
        """The variables of more than one element whose gradient is that multiple of the reference's."""
        whole = math.hypot(*(float(np.linalg.norm(each)) for each in self.expected.gradients.values()))
        large = [key for key, each in self.expected.gradients.items() if np.linalg.norm(each) > CONSTANT * whole]
        return tuple(key for key in large if self.calls[0].gradients[key].size > 1 and self.gradient([key]).is_(factor))

    def _pairs(self, keys: Iterable[str]) -> list[tuple[Array, Array]]:
        ranks = [call.gradients for call in self.calls]
        return [(np.mean([each[key] for each in ranks], axis=0), self.expected.gradients[key]) for key in keys]


@dataclass(frozen=True)
class Scene:
    """All that a cause is told from.

    size: of the job. batch: `per-worker` or `global`. reason: why the migrated run ended, where it failed. expected,
    steps: the failing step in the reference and on each rank, None where there is none. data: who read which
    examples, None where that was not asked.
    """

    size: int
    batch: str
    reason: str
    failure: Failure | None
    expected: Step | None
    steps: tuple[Step | None, ...]
    lock: Lock
    points: tuple[Point, ...]
    reference: Header
    headers: tuple[Header | None, ...]
    counts: tuple[int, ...]
    data: Data | None

    @property
    def apart(self) -> bool:
        """Whether the examples that the ranks read are known not to be, together, the reference's."""
        return self.data is not None and self.data.outcome == "broken"

    @property
    def shared_out(self) -> bool:
        """Whether they are known to be the reference's, each read by one rank."""
        return self.data is not None and self.data.outcome == "shared"

    @property
    def tolerance(self) -> float:
        """How far a constant factor may be off."""
        dtypes = {self.reference.compute, *(key.rsplit("|", 2)[1] for key in self.lock.trained)}
        return COARSE if dtypes & {"float16", "bfloat16"} else CONSTANT

    @property
    def taken(self) -> tuple[StepGradient, ...]:
        """The gradients of the failing step that reach variables, if all ranks took as many as the reference."""
        if self.expected is None:
            return ()
        present = [step for step in self.steps if step and len(step.calls) == len(self.expected.calls)]
        if len(present) < self.size:
            return ()
        pairs = enumerate(self.expected.calls)
        taken = [
            StepGradient(call, tuple(step.calls[number] for step in present))
            for number, call in pairs
            if not call.inner
        ]
        return tuple(
            each for each in taken if all(set(call.gradients) == set(each.expected.gradients) for call in each.calls)
        )

    def noted(self, *what: str) -> tuple[str, ...]:
        """Where any rank did that."""
        notes = (note for header in self.headers if header for note in header.notes)
        return tuple(dict.fromkeys(note.site for note in notes if note.what in what))

    def wrong(self, taken: StepGradient) -> bool:
        """Whether the loss or the gradient is not the reference's."""
        rough = self.tolerance / CONSTANT
        right = taken.gradient().is_(1.0, 10 * GRADIENT * rough) and (taken.same_gradients or not taken.combined)
        return abs(taken.loss - 1) > 2 * LOSS * rough or not right

    def right_again(self) -> bool:
        """Whether a step after the failing one has the reference's loss and gradient."""
        index = self.failure.step if self.failure else 0
        rough = self.tolerance / CONSTANT
        return any(p.step > index and p.loss <= LOSS * rough and p.gradient <= GRADIENT * rough for p in self.points)

    def changed(self, keys: Sequence[str]) -> Likeness:
        """What rank 0's step did to variables, as a multiple of what the reference's did."""
        step, expected = self.steps[0], self.expected
        if step is None or expected is None:
            return NOTHING
        states = (step.before, step.after, expected.before, expected.after)
        known = [key for key in keys if all(key in state for state in states)]
        return likeness((_wide(step, key), _wide(expected, key)) for key in known)

    def same_states(self) -> bool:
        """Whether all ranks have the same variables after the failing step."""
        first = self.steps[0]
        if first is None:
            return False
        keys = [key for key in self.lock.trained if key in first.after]
        return all(step is not None and _equal(step.after, first.after, keys) for step in self.steps)

    def scalars(self, words: Sequence[str]) -> dict[str, float]:
        """Of scalar variables that are not trained and have such a name: rank 0's value over the reference's."""
        step, expected = self.steps[0], self.expected
        if step is None or expected is None:
            return {}
        both = [key for key in expected.before if _scalar(key) and key in step.before and key not in self.lock.trained]
        named = [key for key in both if any(word in key.split("|")[0].lower() for word in words)]
        return {key: float(step.before[key]) / float(expected.before[key]) for key in named if expected.before[key]}


def scene(
    found: Comparison,
    reference: Trace,
    ranks: Sequence[Trace],
    steps: int,
    *,
    batch: str,
    reason: str,
    data: Data | None,
) -> Scene:
    """Gather it. reason: why the migrated run ended, empty where it did not fail."""
    index = found.failure.step if found.failure else None
    states = (None,) * len(ranks) if index is None else tuple(rank.step(index) for rank in ranks)
    return Scene(
        size=len(ranks),
        batch=batch,
        reason=reason,
        failure=found.failure,
        expected=None if index is None else reference.step(index),
        steps=states,
        lock=reference.lock(),
        points=tuple(found.points),
        reference=reference.header() or Header("ended"),
        headers=tuple(rank.header() for rank in ranks),
        counts=tuple(min(rank.closed_steps(), steps) for rank in ranks),
        data=data,
    )


def _wide(step: Step, key: str) -> Array:
    after: Array = step.after[key].astype(np.float64)
    return after - step.before[key]


def _equal(one: Arrays, other: Arrays, keys: Iterable[str] | Mapping[str, Array]) -> bool:
    return all(key in one and np.array_equal(one[key], other[key], equal_nan=True) for key in keys)


def _scalar(key: str) -> bool:
    return not key.rsplit("|", 3)[1]
