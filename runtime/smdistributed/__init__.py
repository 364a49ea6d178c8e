"""SMDDP's API over this runtime: `import tfdp.runtime.smdistributed.dataparallel.tensorflow as sdp`."""

import importlib
from typing import Any

NAMES = (
    "Compression",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "ReduceOp",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_variables",
    "init",
    "local_rank",
    "local_size",
    "oob_allreduce",
    "overlap",
    "rank",
    "shutdown",
    "size",
)
"""What `smdistributed.dataparallel.tensorflow` has here."""


def __getattr__(name: str) -> Any:
    """The package, as `import smdistributed.dataparallel.tensorflow` gives it."""
    if name != "dataparallel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.dataparallel")
