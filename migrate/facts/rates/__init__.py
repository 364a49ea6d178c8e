"""Learning rates: where each is, what it is made of, and what changes it."""

from __future__ import annotations

from .changes import Changes, RateChanges
from .objects import RATES, makes_schedule, sets_by_name
from .rates import Rate, Rates

__all__ = ["RATES", "Changes", "Rate", "RateChanges", "Rates", "makes_schedule", "sets_by_name"]
