"""Who is in the job, in Horovod's words."""
# ruff: noqa: F401 - names that scripts get by way of Horovod's modules

from __future__ import annotations

from typing import Any

from ..foundation import TfdpError, call_site
from ..initialise import join_as_written
from ..job import cross_rank, cross_size, is_initialized, local_rank, local_size, rank, shutdown, size
from .names import BASICS, LEFT_OUT

__all__ = list(BASICS)


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Join the job that `tfdp run` has started, or be a job of one.

    Nothing is seeded, sharded or broadcast: that is the script's own.

    Raises:
        TfdpError: a communicator, or process sets: all ranks take part in everything.
    """
    if comm is not None or process_sets:
        raise TfdpError(f"hvd.init(comm or process_sets) at {call_site()}: {LEFT_OUT['ProcessSet']}. Leave them out")
    join_as_written()


def is_homogeneous() -> bool:
    """Whether each host has equally many ranks."""
    return size() == local_size() * cross_size()


def mpi_threads_supported() -> bool:
    """No MPI is used."""
    return False


mpi_enabled = mpi_built = gloo_enabled = gloo_built = mpi_threads_supported


def nccl_built() -> int:
    """Horovod's own NCCL operations, which there are none of; NCCL is used by TensorFlow's collectives."""
    return 0


def cuda_built() -> bool:
    """No library of tfdp's own was built for CUDA."""
    return False


ddl_built = ccl_built = rocm_built = cuda_built
