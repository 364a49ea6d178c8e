"""Each worker's shard of the data."""

from __future__ import annotations

from .array_shares import held_out
from .arrays import batches_of_all, even_batch_size, global_batch_size, local_batches, local_rows, sharded_length
from .batch_streams import ShardedBatches
from .batches import shard_batches
from .datasets import count_examples, local_batch_size, local_steps, rank_path, shard
from .file_shares import records_of
from .loops import Taken, last_taken

__all__ = [
    "ShardedBatches",
    "Taken",
    "batches_of_all",
    "count_examples",
    "even_batch_size",
    "global_batch_size",
    "held_out",
    "last_taken",
    "local_batch_size",
    "local_batches",
    "local_rows",
    "local_steps",
    "rank_path",
    "records_of",
    "shard",
    "shard_batches",
    "sharded_length",
]
