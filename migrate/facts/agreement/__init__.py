"""Which values and decisions are the same on all workers."""

from __future__ import annotations

from .plan import Agreement

__all__ = ["Agreement"]
