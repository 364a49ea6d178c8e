"""Which values and decisions are the same on all workers."""

from __future__ import annotations

from .plan import Agreement
from .sameness import Mark, Marks, Sameness

__all__ = ["Agreement", "Mark", "Marks", "Sameness"]
