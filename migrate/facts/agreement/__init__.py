"""The plan by which decisions become equal on all workers: what is averaged, summed, or asked of rank 0."""

from __future__ import annotations

from .plan import Agreement

__all__ = ["Agreement"]
