"""Everything that counts optimizer steps."""

from __future__ import annotations

from .bounds import StepBound, StepBounds, Uncounted, divided
from .counts import WHOLE, PerStep, StepCount, StepCounts
from .fit_calls import around, shown, steps_of, uncertain
from .means import StepMeans
from .schedules import OwnSchedule, Schedules

__all__ = [
    "WHOLE",
    "OwnSchedule",
    "PerStep",
    "Schedules",
    "StepBound",
    "StepBounds",
    "StepCount",
    "StepCounts",
    "StepMeans",
    "Uncounted",
    "around",
    "divided",
    "shown",
    "steps_of",
    "uncertain",
]
