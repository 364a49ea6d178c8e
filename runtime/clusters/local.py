"""Processes started on this host by `tfdp run`: everything comes in TFDP_* variables, no port and no file."""

import os
from collections.abc import Mapping

from ..foundation import LaunchEnvironmentError, Topology

RANK, SIZE = "TFDP_RANK", "TFDP_SIZE"
LOCAL_RANK, LOCAL_SIZE = "TFDP_LOCAL_RANK", "TFDP_LOCAL_SIZE"
CROSS_RANK, CROSS_SIZE = "TFDP_CROSS_RANK", "TFDP_CROSS_SIZE"
SEED = "TFDP_SEED"
JOB = "TFDP_JOB"
STORE_FD = "TFDP_STORE_FD"
MEMORY_FD = "TFDP_SHM_FD"
# Where a process that is about to train without having joined tells the launcher so; gone when it has joined.
UNJOINED = "TFDP_UNJOINED"
TRAINING_HOOK = "_tfdp_training_hook"  # the module that looks, in such a process
ADDRESS = "TFDP_ADDRESS"
"""Where the other hosts of a job on several reach this one."""
SECRET = "TFDP_SECRET"
"""By which the hosts of a job on several know each other."""
JOINED = "TFDP_JOINED"
"""The process that has joined as the rank: what it starts finds it in its environment."""
_THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
_BLOCKING_THREADS = "TF_NUM_INTEROP_THREADS"
NEEDED = (RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, CROSS_RANK, CROSS_SIZE, SEED, JOB, STORE_FD, MEMORY_FD)


def present(environ: Mapping[str, str]) -> bool:
    """Whether `tfdp run` started this process.

    Raises:
        LaunchEnvironmentError: only some of the variables are there. Running on as one worker would train something
            else in silence.
    """
    missing = [name for name in NEEDED if name not in environ]
    if missing and len(missing) < len(NEEDED):
        found = [name for name in NEEDED if name in environ]
        raise LaunchEnvironmentError(
            f"the environment has {', '.join(found)} but not {', '.join(missing)}: start the script with `tfdp run`, "
            "or remove these variables to run it as one worker"
        )
    return not missing


def topology(environ: Mapping[str, str]) -> Topology:
    """The topology in `environ`, where `present` is true."""
    return Topology(
        rank=number(environ, RANK),
        size=number(environ, SIZE),
        local_rank=number(environ, LOCAL_RANK),
        local_size=number(environ, LOCAL_SIZE),
        cross_rank=number(environ, CROSS_RANK),
        cross_size=number(environ, CROSS_SIZE),
    )


def number(environ: Mapping[str, str], name: str) -> int:
    """The integer in one variable."""
    try:
        return int(environ[name])
    except ValueError:
        raise LaunchEnvironmentError(
            f"{name} is {environ[name]!r}: an integer is needed. `tfdp run` sets it; do not set it by hand"
        ) from None


def variables(topology: Topology, seed: int, job: str, *, store_fd: int, memory_fd: int) -> dict[str, str]:
    """What the launcher puts into the environment of one rank."""
    numbers = (topology.rank, topology.size, topology.local_rank, topology.local_size)
    values = (*numbers, topology.cross_rank, topology.cross_size, seed, job, store_fd, memory_fd)
    return {name: str(value) for name, value in zip(NEEDED, values, strict=True)}


def shares(cores: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Thread counts for one rank that may use `cores`, where the user has set none."""
    counts = dict.fromkeys(_THREADS, str(max(1, cores)))
    # A collective occupies one of these threads while it waits; tf.data must still find another.
    counts[_BLOCKING_THREADS] = str(max(2, cores))
    return {name: count for name, count in counts.items() if name not in environ}


def cores_of_one(ranks: int) -> int:
    """The cores that one of `ranks` on this host may use: what it is bound to, or its part of all."""
    bound, every = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    return bound if bound < every else max(1, every // ranks)
