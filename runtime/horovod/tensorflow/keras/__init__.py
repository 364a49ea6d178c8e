"""`horovod.tensorflow.keras`, and `horovod.keras`, over this runtime. See `tfdp.runtime.horovod`."""
# ruff: noqa: F401 - what scripts import; test_horovod_names compares it with __all__

from __future__ import annotations

from typing import Any

from ....foundation import Average, Sum
from ....gradients import Compression
from ...averaging import DistributedKerasOptimizer as DistributedOptimizer
from ...basics import *  # noqa: F403 - the same names
from ...collectives import broadcast_global_variables
from ...keras_functions import allgather, allreduce, broadcast, load_model
from ...names import OF_KERAS
from ...options import global_process_set, left_out
from . import callbacks

__all__ = list(OF_KERAS)


def __getattr__(name: str) -> Any:
    raise left_out("horovod.keras", name)
