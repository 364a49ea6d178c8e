"""The job this process belongs to, and what it knows without any data: its seed, its devices, its root."""

from __future__ import annotations

from .devices import pin_gpu
from .membership import (
    DEFAULT_STALL_SECONDS,
    REPORT,
    STALL,
    Job,
    Options,
    cross_rank,
    cross_size,
    current,
    end_badly,
    is_initialized,
    join,
    local_rank,
    local_size,
    normalises_locally,
    rank,
    runs_as_written,
    shards_calls,
    shutdown,
    size,
    widened_by,
)
from .root import Nowhere, on_root, report, root_first, root_path
from .seeds import common_seed, mix, rank_seed, seed_by_rank, set_random_seed, shuffle_seed, stream_mask
from .shown import watch_shown
from .writers import is_kept_apart

__all__ = [
    "DEFAULT_STALL_SECONDS",
    "REPORT",
    "STALL",
    "Job",
    "Nowhere",
    "Options",
    "common_seed",
    "cross_rank",
    "cross_size",
    "current",
    "end_badly",
    "is_initialized",
    "is_kept_apart",
    "join",
    "local_rank",
    "local_size",
    "mix",
    "normalises_locally",
    "on_root",
    "pin_gpu",
    "rank",
    "rank_seed",
    "report",
    "root_first",
    "root_path",
    "runs_as_written",
    "seed_by_rank",
    "set_random_seed",
    "shards_calls",
    "shuffle_seed",
    "shutdown",
    "size",
    "stream_mask",
    "watch_shown",
    "widened_by",
]
