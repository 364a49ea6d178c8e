"""Which engine has started this process as a rank, if any."""

from collections.abc import Mapping

from ..foundation import LaunchEnvironmentError, Topology
from . import openmpi, pmi, sagemaker, slurm, tf_config, torchrun
from .found import Found

# Of two that stand one in the other the inner one comes first: mpirun in a batch job has Slurm's variables, too.
_ENGINES = (openmpi, pmi, torchrun, slurm, sagemaker, tf_config)
_MPI = (openmpi, pmi)
CHOICE = "TFDP_ENGINE"
NONE = "none"


def recognise(environ: Mapping[str, str]) -> Found | None:
    """The rank that this process is by its environment, None where no engine has started it, or TFDP_ENGINE is none.

    Raises:
        LaunchEnvironmentError: variables of an engine are incomplete and no other's are there, two versions of MPI
            disagree, or the numbers contradict each other. Running on as one worker would train something else in
            silence.
    """
    if environ.get(CHOICE, NONE) != NONE:
        raise LaunchEnvironmentError(f"{CHOICE} is {environ[CHOICE]!r}: it can be {NONE}, for one worker, or unset")
    if CHOICE in environ:
        return None
    found, incomplete = list[Found](), list[LaunchEnvironmentError]()
    for engine in _ENGINES:
        try:
            one = engine.find(environ)
        except LaunchEnvironmentError as error:
            incomplete.append(error)
            continue
        if one is not None:
            found.append(one)
    if not found:
        if incomplete:
            raise incomplete[0]
        return None
    mpi = [one for one in found if one.engine in {engine.ENGINE for engine in _MPI}]
    if len({(one.rank, one.size) for one in mpi}) > 1:
        said = " and ".join(f"rank {one.rank} of {one.size} by {one.engine}" for one in mpi)
        raise LaunchEnvironmentError(f"this process is {said}: start it by one of them")
    first = found[0]
    Topology(first.rank, first.size, first.local_rank, first.local_size, 0, 1)  # which refuses what cannot be
    return first
