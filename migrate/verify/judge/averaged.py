"""The gradients that ranks went on with, where a script averages by hand what its tape gave, out of sight."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..record import Array, Arrays, Call, Step


def as_averaged(expected: Step, steps: Sequence[Step]) -> Sequence[Step]:
    """The steps with the gradients that went on from their calls.

    A script may average or add up by hand, out of sight, what its tape gives. That it has is known where the ranks'
    gradients differ, and their variables end the step alike to the last bit; whether it did so rightly, and which of
    the two, the update tells.
    """
    pairs = zip(expected.calls, zip(*(step.calls for step in steps), strict=True), strict=True)
    by_call = [_averaged(call, calls, steps) for call, calls in pairs]
    return [replace(step, calls=tuple(calls[rank] for calls in by_call)) for rank, step in enumerate(steps)]


def _averaged(expected: Call, calls: Sequence[Call], steps: Sequence[Step]) -> Sequence[Call]:
    """One call of all ranks."""
    first, *others = calls
    known = first.inner or first.combined
    if known or all(_alike(call.gradients, first.gradients, first.gradients) for call in others):
        return calls
    after = steps[0].after
    if not all(_alike(step.after, after, [key for key in first.gradients if key in after]) for step in steps):
        return calls
    total = {key: np.sum([call.gradients[key] for call in calls], axis=0) for key in first.gradients}
    mean = {key: value / len(calls) for key, value in total.items()}
    far, near = (math.hypot(*(norm(g, expected.gradients[key]) for key, g in each.items())) for each in (mean, total))
    if near < far:
        # The loss is a sum that is divided by the batch of all, and the ranks' parts of it are added up.
        return [replace(call, loss=call.loss * len(calls), gradients=total) for call in calls]
    return [replace(call, gradients=mean) for call in calls]


def _alike(one: Arrays, other: Arrays, keys: Iterable[str]) -> bool:
    return all(key in one and np.array_equal(one[key], other[key], equal_nan=True) for key in keys)


def norm(value: Array, other: Array | None = None) -> float:
    """The norm of an array, or of its difference from another one; elements that are infinite or NaN in both agree."""
    wide = value.astype(np.float64)
    if other is None:
        return float(np.linalg.norm(wide))
    same = (wide == other) | (np.isnan(wide) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        return float(np.linalg.norm(np.where(same, 0.0, wide - other)))
