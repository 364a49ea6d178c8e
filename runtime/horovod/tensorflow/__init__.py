"""`horovod.tensorflow` over this runtime. See `tfdp.runtime.horovod`."""
# ruff: noqa: F401 - what scripts import; test_horovod_names compares it with __all__

from __future__ import annotations

from typing import Any

from ...foundation import Average, Max, Min, Product, Sum
from ...gradients import Compression
from ..averaging import DistributedGradientTape, DistributedOptimizer
from ..basics import *  # noqa: F403 - the same names
from ..collectives import (
    allgather,
    allgather_object,
    allreduce,
    broadcast,
    broadcast_,
    broadcast_global_variables,
    broadcast_object,
    broadcast_variables,
    grouped_allgather,
    grouped_allreduce,
    local_rank_op,
    local_size_op,
    rank_op,
    size_op,
)
from ..names import OF_TENSORFLOW
from ..options import global_process_set, left_out
from . import keras

__all__ = list(OF_TENSORFLOW)


def __getattr__(name: str) -> Any:
    raise left_out("horovod.tensorflow", name)
