"""Whether values are the same on all workers, and if not, why."""

from __future__ import annotations

from .decisions import local_decisions
from .exceptions import Exceptions
from .marks import BY_CHANCE, BY_PROCESS, SAME, Mark, Marks
from .own_counts import Counts, OwnCounts
from .same_data import SameData
from .seeding import Seeding, Seedings, flag_default, own_maker
from .values import Sameness

__all__ = [
    "BY_CHANCE",
    "BY_PROCESS",
    "SAME",
    "Counts",
    "Exceptions",
    "Mark",
    "Marks",
    "OwnCounts",
    "SameData",
    "Sameness",
    "Seeding",
    "Seedings",
    "flag_default",
    "local_decisions",
    "own_maker",
]
