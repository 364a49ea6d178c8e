"""Ranks that torchrun, or what sets its variables, has started."""

from collections.abc import Mapping

from .found import Found, numbers, require

ENGINE = "torchrun"
_RUN, _AGAIN = "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"
_NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_ROOT = ("MASTER_ADDR", "MASTER_PORT")


def find(environ: Mapping[str, str]) -> Found | None:
    """The rank, None where this engine has not started the process.

    Raises:
        LaunchEnvironmentError: its variables are incomplete.
    """
    if _RUN not in environ:
        return None
    rank, size, local_rank, local_size = numbers(environ, ENGINE, _NAMES)
    require(environ, ENGINE, _ROOT)
    job = "/".join([environ[_RUN], environ.get(_AGAIN, "0"), *(environ[name] for name in _ROOT)])
    return Found(ENGINE, rank, size, local_rank, local_size, job, environ[_ROOT[0]])
