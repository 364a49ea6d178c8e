"""Whether values are the same on all workers, and if not, why."""

from __future__ import annotations

from .marks import BY_CHANCE, Mark
from .seeding import Seeding, Seedings, flag_default, own_maker
from .values import Sameness

__all__ = [
    "BY_CHANCE",
    "Mark",
    "Sameness",
    "Seeding",
    "Seedings",
    "flag_default",
    "own_maker",
]
