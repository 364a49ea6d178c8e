"""`smdistributed.dataparallel.tensorflow` (SMDDP, which ended at TensorFlow 2.11) over this runtime.

A script trains as it did; see `tfdp.runtime.horovod`, of which these are the names that SMDDP has, in its own order of
arguments.
"""
# ruff: noqa: F401 - what scripts import; test_horovod_names compares it with __all__

from __future__ import annotations

from typing import Any

from ...foundation import ReduceOp
from ...framework import as_written
from ...gradients import Compression
from ...horovod import averaging, collectives
from ...horovod.collectives import broadcast_global_variables, broadcast_variables
from ...initialise import join_as_written as init
from ...job import local_rank, local_size, rank, shutdown, size
from .. import NAMES

__all__ = list(NAMES)


@as_written
def allreduce(
    tensor: Any,
    param_index: int = 0,
    num_params: int = 1,
    compression: Any = Compression.none,
    op: ReduceOp = ReduceOp.AVERAGE,
) -> Any:
    """The tensor combined over all ranks; SMDDP's numbers of parameters are not needed."""
    del param_index, num_params
    return collectives.allreduce(tensor, compression=compression, op=op)


@as_written
def oob_allreduce(tensor: Any, compression: Any = Compression.none, op: ReduceOp = ReduceOp.AVERAGE) -> Any:
    """The tensor combined over all ranks."""
    return collectives.allreduce(tensor, compression=compression, op=op)


@as_written
def broadcast(tensor: Any, root_rank: int) -> Any:
    """The root's tensor, on every rank."""
    return collectives.broadcast(tensor, root_rank)


def overlap(tensor: Any) -> Any:
    """The tensor itself: exchanges are no part of XLA's clusters here."""
    return tensor


class DistributedGradientTape(averaging.DistributedGradientTape):
    """A tape whose gradients are averaged over the ranks, or added up."""

    def __init__(
        self,
        gradtape: Any,
        compression: Any = Compression.none,
        sparse_as_dense: bool = False,
        op: ReduceOp = ReduceOp.AVERAGE,
    ) -> None:
        """As `dp.DistributedGradientTape`."""
        super().__init__(gradtape, compression=compression, sparse_as_dense=sparse_as_dense, op=op)


def DistributedOptimizer(  # noqa: N802, PLR0917 - SMDDP's name and order
    optimizer: Any,
    name: str | None = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: ReduceOp = ReduceOp.AVERAGE,
    bucket_cap_mb: int = 25,
) -> Any:
    """The Keras optimizer, whose gradients are averaged over the ranks, or added up."""
    del name, use_locking, device_dense, device_sparse, bucket_cap_mb
    options: dict[str, Any] = {"compression": compression, "sparse_as_dense": sparse_as_dense, "op": op}
    return averaging.DistributedOptimizer(optimizer, **options)


def __getattr__(name: str) -> Any:
    if name == "BroadcastGlobalVariablesHook":
        raise AttributeError(f"{name} is not in {__name__}: it is for sessions of TensorFlow 1")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}, as SMDDP's has not")
