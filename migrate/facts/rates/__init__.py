"""Learning rates: where each is, what it is made of, and what changes it."""

from __future__ import annotations

from ..apis import RATES
from .changes import RateChanges
from .objects import makes_schedule, sets_by_name
from .rates import Rate, Rates

__all__ = ["RATES", "Rate", "RateChanges", "Rates", "makes_schedule", "sets_by_name"]
