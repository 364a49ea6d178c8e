"""Ranks that Slurm's `srun` has started. The shell of an `sbatch` script has some of its variables and is no rank."""

import re
from collections.abc import Mapping

from ..foundation import LaunchEnvironmentError
from .found import Found, numbers, require

ENGINE = "Slurm"
_SIZE, _RANK, _LOCAL_RANK, _NODE = "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"
_TASKS, _JOB, _STEP = "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID", "SLURM_STEP_ID"
_COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?")


def find(environ: Mapping[str, str]) -> Found | None:
    """The rank, None where this engine has not started the process as one of a step.

    Raises:
        LaunchEnvironmentError: its variables are incomplete.
    """
    if _SIZE not in environ:
        return None
    size, rank, local_rank, node = numbers(environ, ENGINE, (_SIZE, _RANK, _LOCAL_RANK, _NODE))
    require(environ, ENGINE, (_TASKS, _JOB, _STEP))
    tasks = tasks_per_node(environ[_TASKS])
    if sum(tasks) != size or node >= len(tasks):
        raise LaunchEnvironmentError(
            f"{_TASKS} is {environ[_TASKS]!r}, which are not the {size} tasks of {_SIZE} with node {node} among them: "
            "are these the variables of two steps? Start the script by one srun"
        )
    return Found(ENGINE, rank, size, local_rank, tasks[node], f"{environ[_JOB]}.{environ[_STEP]}")


def tasks_per_node(text: str) -> list[int]:
    """How many tasks each node has: `2(x3),1` are 2, 2, 2 and 1.

    Raises:
        LaunchEnvironmentError: the text is something else.
    """
    counts = []
    for part in text.split(","):
        found = _COUNT.fullmatch(part)
        if found is None:
            raise LaunchEnvironmentError(f"{_TASKS} is {text!r}: numbers such as 2(x3),1 were expected")
        counts += [int(found[1])] * int(found[2] or 1)
    return counts
