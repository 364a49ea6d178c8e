"""Ranks that Slurm's `srun` has started. The shell of an `sbatch` script has some of its variables and is no rank."""

import re
from collections.abc import Mapping

from ..foundation import LaunchEnvironmentError
from .found import Found, numbers, require

ENGINE = "Slurm"
_SIZE, _RANK, _LOCAL_RANK, _NODE = "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"
_TASKS, _JOB, _STEP = "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID", "SLURM_STEP_ID"
_NODES = "SLURM_STEP_NODELIST"
_COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?")


def find(environ: Mapping[str, str]) -> Found | None:
    """The rank, None where this engine has not started the process as one of a step.

    Raises:
        LaunchEnvironmentError: its variables are incomplete.
    """
    if _SIZE not in environ:
        return None
    size, rank, local_rank, node = numbers(environ, ENGINE, (_SIZE, _RANK, _LOCAL_RANK, _NODE))
    require(environ, ENGINE, (_TASKS, _JOB, _STEP, _NODES))
    tasks = tasks_per_node(environ[_TASKS])
    if sum(tasks) != size or node >= len(tasks):
        raise LaunchEnvironmentError(
            f"{_TASKS} is {environ[_TASKS]!r}, which are not the {size} tasks of {_SIZE} with node {node} among them: "
            "are these the variables of two steps? Start the script by one srun"
        )
    job = f"{environ[_JOB]}.{environ[_STEP]}"
    return Found(ENGINE, rank, size, local_rank, tasks[node], job, hostnames(environ[_NODES])[0])


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


def hostnames(text: str) -> list[str]:
    """The hosts of a list as Slurm writes it: `a[1-2]n[01-02],b` are a1n01, a1n02, a2n01, a2n02 and b.

    Raises:
        LaunchEnvironmentError: the text is no such list.
    """
    found, depth, start = [], 0, 0
    for at, letter in enumerate(f"{text},"):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            found += _expanded(text[start:at])
            start = at + 1
    if depth != 0 or not all(found):
        raise LaunchEnvironmentError(f"{_NODES} is {text!r}: hosts such as a[01-03],b were expected")
    return found


def _expanded(name: str) -> list[str]:
    before, bracket, rest = name.partition("[")
    if not bracket:
        return [name]
    numbers, _, after = rest.partition("]")
    ends = _expanded(after)
    return [f"{before}{number}{end}" for part in numbers.split(",") for number in _range(part) for end in ends]


def _range(part: str) -> list[str]:
    first, dash, last = part.partition("-")
    if not first.isdigit() or (dash and not last.isdigit()):
        raise LaunchEnvironmentError(f"{_NODES} has {part!r} in brackets: numbers such as 01-03 were expected")
    return [str(number).zfill(len(first)) for number in range(int(first), int(last or first) + 1)]
