"""Collective operations on tensors and Python values."""

from __future__ import annotations

from .decisions import agree, average_value, metric_result
from .global_batch import global_mean, global_sum, is_recording, times_asked
from .operations import (
    allgather,
    allreduce,
    barrier,
    broadcast,
    broadcast_object,
    broadcast_variables,
    exchanged,
    grouped_allreduce,
    reducible,
)
from .order import keep_in_order

__all__ = [
    "agree",
    "allgather",
    "allreduce",
    "average_value",
    "barrier",
    "broadcast",
    "broadcast_object",
    "broadcast_variables",
    "exchanged",
    "global_mean",
    "global_sum",
    "grouped_allreduce",
    "is_recording",
    "keep_in_order",
    "metric_result",
    "reducible",
    "times_asked",
]
