"""The judgement: the traces of N ranks against the reference's. Pure NumPy, no processes.

Limits are relative. A gradient is measured against the larger of its own norm and the norm below which rounding of the
whole gradient already reaches the limit; an update likewise against the rounding of the variable it changes. So a bias
whose gradient is nothing but cancelled rounding fails nobody, and everything else is held to the plain ratio.

Adam gives an element whose gradient is 1e-7 of the others' the same step as the others. Such a gradient is not known to
the precision asked of the update: elements whose own gradient differs by more than that are left out of the update's
norm. Their gradient has been judged. Where that is wrong as a whole, nothing is left out: its update is what it makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..record import WHOLE, Array, Arrays, Call, Header, Lock, Step, Trace
from .averaged import as_averaged, norm

LOSS, GRADIENT, UPDATE = 1e-6, 1e-5, 1e-4
# Up to so many times its limit, a loss or gradient in float32 may be rounding, where its terms nearly cancel.
UNDECIDED = 10
# On sharded calls all that float64 shows is exact, so it may decide about more: twice or half a gradient fails at once.
UNDECIDED_CALLS = 10_000
# What rounding leaves of a gradient whose terms cancel, as a part of the norm of all gradients taken together: that of
# the last bias of a discriminator, say, is a sum over all examples and places of terms of both signs.
CANCELLED = 1e-6
EPSILON = 2.0**-23
# Twice or half a gradient must fail in the coarsest dtype too.
COARSEST = {"loss": 0.05, "gradient": 0.05, "update": 0.1}
EPSILONS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
# A loss is measured against at least this part of the largest loss of its call: losses may pass through zero.
SMALL_LOSS = 0.01


@dataclass(frozen=True)
class Failure:
    """The first place where a criterion is missed. kind: start, calls, loss, gradient, update, missing or steps."""

    step: int
    rank: int | None
    variable: str
    kind: str
    value: float
    limit: float
    text: str


@dataclass(frozen=True)
class Limits:
    """The largest relative differences that pass, for the dtypes of the script at hand."""

    loss: float = LOSS
    gradient: float = GRADIENT
    update: float = UPDATE


FLOAT32 = Limits()


@dataclass(frozen=True)
class Row:
    """Largest relative differences of one variable over all steps and ranks; None where nothing was compared."""

    variable: str
    gradient: float | None
    update: float | None


@dataclass(frozen=True)
class Point:
    """One step.

    losses: of each outermost gradient, the reference's and the mean over the ranks. loss, gradient, update: the largest
    relative differences in the step. weights: that of the trained variables after it, by their norm; decides nothing.
    """

    step: int
    losses: tuple[tuple[float, float], ...] = ()
    loss: float = 0.0
    gradient: float = 0.0
    update: float = 0.0
    weights: float = 0.0

    def grown(self, kind: str, value: float) -> Point:
        """With a difference taken into account."""
        larger: dict[str, Any] = {kind: _larger(getattr(self, kind), value)}
        return replace(self, **larger)


@dataclass
class Comparison:
    """Everything found; `failure` is the first in order of steps.

    undecided: by variable, the first gradient that is off by more than its limit and may be rounding all the same; the
    first such loss has an empty key. times: of its limit, up to where that is.
    """

    failure: Failure | None = None
    undecided: dict[str, Failure] = field(default_factory=dict)
    times: int = 1
    loss: float = 0.0
    gradients: dict[str, float] = field(default_factory=dict)
    updates: dict[str, float] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    limits: Limits = FLOAT32

    def rows(self, names: Mapping[str, str]) -> tuple[Row, ...]:
        """One row per variable, in the order in which they were first compared."""
        keys = dict.fromkeys([*self.gradients, *self.updates])
        return tuple(Row(readable(key, names), self.gradients.get(key), self.updates.get(key)) for key in keys)


def lock(reference: Trace, steps: int) -> Lock:
    """What a migrated run must take over: trained variables, and those that look like their slots.

    A slot is an array with the shape of a trained variable that changes from step to step and is not trained itself.
    """
    trained: dict[str, None] = {}
    changing: dict[str, None] = {}
    calls = []
    for step in _steps(reference, steps):
        calls.append(len(step.calls))
        trained.update(dict.fromkeys(key for call in step.calls for key in call.gradients if not call.inner))
        moved = (key for key, value in step.after.items() if not _same(step.before.get(key), value))
        changing.update(dict.fromkeys(moved))
    shapes = {_shape(key) for key in trained} - {""}
    slots = [key for key in changing if key not in trained and _shape(key) in shapes]
    return Lock(tuple(trained), tuple(slots), tuple(calls))


def drawn(start: Arrays, trained: Sequence[str]) -> dict[str, Array]:
    """Of the initial values, those that rank 0 must share: trained variables, and arrays that are not constant.

    Scalars are left alone: a learning rate taken over from the reference would hide a missing scale.
    """
    return {key: value for key, value in start.items() if key in trained or (value.size > 1 and np.ptp(value) > 0)}


def compared(reference: Trace, ranks: Sequence[Trace], steps: int, *, times: int = 1) -> Comparison:
    """Compare `steps` steps of every rank with the reference's.

    times: a loss or gradient may be rounding that is off by so many times its limit at most.
    """
    return _Judge(reference, ranks, steps, times).judge()


def compared_by_rank(references: Sequence[Trace], ranks: Sequence[Trace], steps: int) -> Comparison:
    """Compare `steps` steps of each rank with those of the reference's same rank."""
    pairs = zip(references, ranks, strict=True)
    alone = [_Judge(reference, [rank], steps, 1).judge() for reference, rank in pairs]
    failures = [replace(one.failure, rank=rank) for rank, one in enumerate(alone) if one.failure is not None]
    found = Comparison(min(failures, key=lambda failure: failure.step, default=None), limits=alone[0].limits)
    for one in alone:
        found.loss = _larger(found.loss, one.loss)
        for whole, part in ((found.gradients, one.gradients), (found.updates, one.updates)):
            whole.update({key: _larger(whole.get(key, 0.0), value) for key, value in part.items()})
    for points in zip(*(one.points for one in alone), strict=False):
        point = points[0]
        for other in points[1:]:
            for kind in ("loss", "gradient", "update", "weights"):
                point = point.grown(kind, getattr(other, kind))
        found.points.append(point)
    return found


def readable(key: str, names: Mapping[str, str]) -> str:
    """A variable's name with its shape: names alone are not unique."""
    name, shape, _, occurrence = key.rsplit("|", 3)
    number = f" #{int(occurrence) + 1}" if int(occurrence) else ""
    return f"{names.get(key, name)} ({shape or 'scalar'}){number}"


@dataclass(frozen=True)
class _Place:
    step: int
    rank: int | None = None
    key: str = ""


class _Judge:
    def __init__(self, reference: Trace, ranks: Sequence[Trace], steps: int, times: int) -> None:
        header = reference.header() or Header("ended")
        self._names = header.names
        self._reference = reference
        self._ranks = ranks
        self._steps = steps
        self._lock = reference.lock()
        dtypes = [header.compute, *(key.rsplit("|", 2)[1] for key in self._lock.trained)]
        self._coarse = max(EPSILONS.get(dtype, EPSILON) / EPSILON for dtype in dtypes)
        self._undecided = 1 if self._coarse > 1 else times
        self._largest = _largest_losses(reference, steps)
        limits = {"loss": LOSS, "gradient": GRADIENT, "update": UPDATE}
        limits = {kind: self._limit(kind, limit) for kind, limit in limits.items()}
        self.found = Comparison(limits=Limits(**limits), times=self._undecided)
        self._point = Point(0)
        self._wrong: set[tuple[int, str]] = set()  # of the step: rank and variable of each gradient that no rounding is

    def judge(self) -> Comparison:
        for index, expected in enumerate(_steps(self._reference, self._steps)):
            steps = [rank.step(index) for rank in self._ranks]
            absent = next((rank for rank, step in enumerate(steps) if step is None), None)
            if absent is not None:
                text = f"took {index} steps, the reference {self._steps}"
                self._fail(_Place(index, absent), "steps", index, self._steps, text)
                break
            present = [step for step in steps if step is not None]
            if not self._step(index, expected, present):
                break
        return self.found

    def _step(self, index: int, expected: Step, steps: Sequence[Step]) -> bool:
        """Compare one step; False where going on makes no sense."""
        if not all(self._calls(index, rank, expected, step) for rank, step in enumerate(steps)):
            return False
        self._point, self._wrong = Point(index), set()
        if index == 0:
            self._start(expected, steps)
        steps = as_averaged(expected, steps)
        for number, call in enumerate(expected.calls):
            if not call.inner:
                calls = [step.calls[number] for step in steps]
                self._loss(index, number, call, calls)
                self._gradients(index, call, calls)
        for rank, step in enumerate(steps):
            self._updates(index, rank, expected, step)
            self._weights(expected, step)
        self.found.points.append(self._point)
        return True

    def _calls(self, index: int, rank: int, expected: Step, step: Step) -> bool:
        wanted, taken = len(expected.calls), len(step.calls)
        if wanted != taken or not step.closed:
            text = f"took {taken} gradients before its variables changed, the reference {wanted}"
            if wanted == taken:
                text = "did not change its variables with the gradient"
            self._fail(_Place(index, rank), "calls", taken, wanted, text)
            return False
        for call, ours in zip(expected.calls, step.calls, strict=True):
            odd = set(call.gradients) ^ set(ours.gradients)
            if odd and not call.inner:
                key = min(odd)
                where = "the reference only" if key in call.gradients else "the migrated run only"
                self._fail(_Place(index, rank, key), "missing", 1, 0, f"has a gradient in {where}")
                return False
        return True

    def _start(self, expected: Step, steps: Sequence[Step]) -> None:
        for rank, step in enumerate(steps):
            for key in (*self._lock.trained, *self._lock.slots):
                if key in expected.before and key in step.before:
                    difference = norm(step.before[key], expected.before[key])
                    scale = max(norm(expected.before[key]), EPSILON)
                    self._hold(_Place(0, rank, key), "start", difference / scale, EPSILON)

    def _loss(self, index: int, number: int, call: Call, calls: Sequence[Call]) -> None:
        weights = [1.0 if ours.weight is None else ours.weight for ours in calls]
        counted = [(ours.loss, weight) for ours, weight in zip(calls, weights, strict=True) if weight]
        mean = sum(loss * weight for loss, weight in counted) / max(sum(weights), 1e-300)
        scale = max(abs(call.loss), SMALL_LOSS * self._largest.get(number, 0.0), 1e-30)
        losses: dict[int | None, float] = {None: mean}
        if all(ours.combined == WHOLE for ours in calls):
            losses = {rank: ours.loss for rank, ours in enumerate(calls)}
        self._point = replace(self._point, losses=(*self._point.losses, (call.loss, mean)))
        for rank, loss in losses.items():
            value = abs(loss - call.loss) / scale
            self.found.loss = _larger(self.found.loss, value)
            self._point = self._point.grown("loss", value)
            self._hold(_Place(index, rank), "loss", value, LOSS)

    def _gradients(self, index: int, call: Call, calls: Sequence[Call]) -> None:
        whole = _whole(call)
        for key, gradient in call.gradients.items():
            scale = max(norm(gradient), whole * CANCELLED / GRADIENT, 1e-30)
            for rank, ours in enumerate(calls):
                value = norm(ours.gradients[key], gradient) / scale
                self.found.gradients[key] = _larger(self.found.gradients.get(key, 0.0), value)
                self._point = self._point.grown("gradient", value)
                self._hold(_Place(index, rank, key), "gradient", value, GRADIENT)
                if not value <= self._limit("gradient", GRADIENT) * self._undecided:
                    self._wrong.add((rank, key))

    def _updates(self, index: int, rank: int, expected: Step, step: Step) -> None:
        # Slots keep gradients; those of a variable whose gradient cancels wholly hold nothing but rounding errors.
        noise = CANCELLED * math.hypot(*(_whole(call) for call in expected.calls if not call.inner))
        trained = set(self._lock.trained)
        for key in (*self._lock.trained, *self._lock.slots):
            if key not in expected.after:
                continue
            if key not in step.after:
                made = expected.before.get(key)
                if made is not None and np.array_equal(made, expected.after[key]):
                    continue  # a slot that is made early, and is not used yet
                self._fail(_Place(index, rank, key), "missing", 1, 0, "exists in the reference only")
                continue
            known: Array = np.array(True)
            if (rank, key) not in self._wrong:
                known = _determined(key, expected.calls, step.calls, self._limit("update", UPDATE) / 10)
            wanted, change = (np.where(known, _change(one, key), 0.0) for one in (expected, step))
            least = max(norm(expected.after[key]) * EPSILON, 0.0 if key in trained else noise)
            scale = max(norm(wanted), least / UPDATE, 1e-30)
            value = norm(change, wanted) / scale
            self.found.updates[key] = _larger(self.found.updates.get(key, 0.0), value)
            self._point = self._point.grown("update", value)
            self._hold(_Place(index, rank, key), "update", value, UPDATE)

    def _weights(self, expected: Step, step: Step) -> None:
        for key in self._lock.trained:
            if key in expected.after and key in step.after:
                scale = max(norm(expected.after[key]), EPSILON)
                self._point = self._point.grown("weights", norm(step.after[key], expected.after[key]) / scale)

    def _hold(self, place: _Place, kind: str, value: float, limit: float) -> None:
        limit = self._limit(kind, limit)
        if value <= limit:
            return
        failure = self._failure(place, kind, value, limit, f"differs by {value:.2g}, the limit is {limit:.2g}")
        # An update is as far undecided as the gradient that it is made of: Adam's moments hold what cancels in it.
        measured = self._limit("gradient", GRADIENT) if kind == "update" else limit
        if kind in COARSEST and value <= measured * self._undecided:
            self.found.undecided.setdefault(place.key, failure)
        else:
            self.found.failure = self.found.failure or failure

    def _limit(self, kind: str, limit: float) -> float:
        """The limit for the script's own dtypes."""
        return min(limit * self._coarse, COARSEST[kind]) if kind in COARSEST else limit

    def _fail(self, place: _Place, kind: str, value: float, limit: float, text: str) -> None:
        self.found.failure = self.found.failure or self._failure(place, kind, value, limit, text)

    def _failure(self, place: _Place, kind: str, value: float, limit: float, text: str) -> Failure:
        variable = readable(place.key, self._names) if place.key else ""
        return Failure(place.step, place.rank, variable, kind, float(value), float(limit), text)


def _steps(trace: Trace, steps: int) -> Iterator[Step]:
    for index in range(steps):
        step = trace.step(index)
        if step is None or not step.closed:
            return
        yield step


def _largest_losses(reference: Trace, steps: int) -> dict[int, float]:
    largest: dict[int, float] = {}
    for step in _steps(reference, steps):
        for number, call in enumerate(step.calls):
            largest[number] = max(largest.get(number, 0.0), abs(call.loss) if math.isfinite(call.loss) else 0.0)
    return largest


def _change(step: Step, key: str) -> Array:
    after = step.after[key].astype(np.float64)
    return after - step.before[key] if key in step.before else after


def _determined(key: str, expected: Sequence[Call], calls: Sequence[Call], precision: float) -> Array:
    """Where the gradients of one variable agree to `precision`: elementwise, for all calls."""
    known: Array = np.array(True)
    for wanted, call in zip(expected, calls, strict=True):
        if key in wanted.gradients and not wanted.inner:
            gradient = wanted.gradients[key].astype(np.float64)
            with np.errstate(invalid="ignore"):
                close = np.abs(call.gradients[key] - gradient) <= precision * np.abs(gradient)
            known = known & (close | ~np.isfinite(gradient))
    return known


def _whole(call: Call) -> float:
    """The norm of all gradients of a call together."""
    return math.hypot(*(norm(gradient) for gradient in call.gradients.values()))


def _same(before: Array | None, after: Array) -> bool:
    return before is not None and np.array_equal(before, after, equal_nan=True)


def _larger(known: float, value: float) -> float:
    return math.inf if math.isnan(value) else max(known, value)


def _shape(key: str) -> str:
    return key.rsplit("|", 3)[1]
