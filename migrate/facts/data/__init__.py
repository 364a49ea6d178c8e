"""What the data are: datasets, arrays, how they are taken, and where they are sharded."""

from __future__ import annotations

from .arrays import Arrays
from .chains import Chain, drops_remainder
from .datasets import Datasets
from .generators import Seeding, Seedings
from .misses import Sought
from .next_batches import NextBatch, NextBatches, endless
from .seeding import seeds
from .shard_points import ShardPoint, find_shard_point
from .sharing import Sharing, Switches
from .shuffles import seed_place, shuffles_of
from .take import Missed, StepRows, Sureness, Take
from .takes import Takes

__all__ = [
    "Arrays",
    "Chain",
    "Datasets",
    "Missed",
    "NextBatch",
    "NextBatches",
    "Seeding",
    "Seedings",
    "ShardPoint",
    "Sharing",
    "Sought",
    "StepRows",
    "Sureness",
    "Switches",
    "Take",
    "Takes",
    "drops_remainder",
    "endless",
    "find_shard_point",
    "seed_place",
    "seeds",
    "shuffles_of",
]
