"""Ranks that Open MPI's `mpirun` has started (4 and 5)."""

from collections.abc import Mapping

from .found import Found, numbers, require

ENGINE = "Open MPI"
_RANK, _SIZE = "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"
_LOCAL_RANK, _LOCAL_SIZE = "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"
_JOBS = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")  # the second is that of versions before PMIx


def find(environ: Mapping[str, str]) -> Found | None:
    """The rank, None where this engine has not started the process.

    Raises:
        LaunchEnvironmentError: its variables are incomplete.
    """
    if _SIZE not in environ and _RANK not in environ:
        return None
    rank, size, local_rank, local_size = numbers(environ, ENGINE, (_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE))
    job = next((environ[name] for name in _JOBS if environ.get(name)), "")
    if not job:
        require(environ, ENGINE, _JOBS[:1])
    return Found(ENGINE, rank, size, local_rank, local_size, job)
