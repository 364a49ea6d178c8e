"""Ranks that the `mpirun` of MPICH or Intel MPI has started; both use the same process manager."""

import os
import socket
from collections.abc import Mapping

from ..foundation import LaunchEnvironmentError
from .found import Found, numbers
from .handout import other_end

ENGINE = "MPICH or Intel MPI"
_RANK, _SIZE, _FD = "PMI_RANK", "PMI_SIZE", "PMI_FD"
_LOCAL_RANK, _LOCAL_SIZE = "MPI_LOCALRANKID", "MPI_LOCALNRANKS"


def find(environ: Mapping[str, str]) -> Found | None:
    """The rank, None where this engine has not started the process.

    Raises:
        LaunchEnvironmentError: its variables are incomplete.
    """
    if _SIZE not in environ and _RANK not in environ:
        return None
    names = (_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE, _FD)
    rank, size, local_rank, local_size, fd = numbers(environ, ENGINE, names)
    job = _manager(fd) if size > 1 else ""
    return Found(ENGINE, rank, size, local_rank, local_size, job)


def _manager(fd: int) -> str:
    """The process that manages this job's ranks on this host: the other end of the socket that each of them has."""
    try:
        with socket.socket(fileno=os.dup(fd)) as there:
            pid, _ = other_end(there)
    except OSError as error:
        raise LaunchEnvironmentError(
            f"{_FD} is {fd}, and no way to the process manager of {ENGINE} ({error}): file descriptors are not passed "
            "on to grandchildren. Start the script by mpirun itself, or remove the variables to run it as one worker"
        ) from None
    return str(pid)
