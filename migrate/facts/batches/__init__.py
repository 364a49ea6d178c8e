"""Batches: where their size stands, and where their rows are taken."""

from __future__ import annotations

from .array_batches import ArrayBatches
from .sharding import Dealing, dealing
from .sizes import BatchSizes, is_part

__all__ = ["ArrayBatches", "BatchSizes", "Dealing", "dealing", "is_part"]
