"""Batches: where their size stands, and where their rows are taken."""

from __future__ import annotations

from .array_batches import ArrayBatches
from .sharding import ShardPlan, shard_plan
from .sizes import BatchSizes

__all__ = ["ArrayBatches", "BatchSizes", "ShardPlan", "shard_plan"]
