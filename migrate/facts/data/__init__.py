"""What the data are: datasets, arrays, how they are taken, and where they are sharded."""

from __future__ import annotations

from .arrays import Arrays
from .chains import Chain, draws, drops_remainder
from .datasets import Datasets
from .drawing import Draw, numpy_draw
from .misses import Sought
from .next_batches import NextBatch, NextBatches, endless
from .seeding import draws_in, seeds
from .shard_points import ShardPoint, find_batch_shard_point, find_shard_point, of_lengths, of_padded
from .sharing import Sharing, Switches
from .shuffles import seed_place, shuffles_of
from .take import Missed, StepRows, Sureness, Take
from .takes import Takes

__all__ = [
    "Arrays",
    "Chain",
    "Datasets",
    "Draw",
    "Missed",
    "NextBatch",
    "NextBatches",
    "ShardPoint",
    "Sharing",
    "Sought",
    "StepRows",
    "Sureness",
    "Switches",
    "Take",
    "Takes",
    "draws",
    "draws_in",
    "drops_remainder",
    "endless",
    "find_batch_shard_point",
    "find_shard_point",
    "numpy_draw",
    "of_lengths",
    "of_padded",
    "seed_place",
    "seeds",
    "shuffles_of",
]
