"""The plan by which decisions become equal on all workers, and metrics those of all examples."""

from __future__ import annotations

from .metrics import Metrics
from .plan import Agreement

__all__ = ["Agreement", "Metrics"]
