"""What an engine's variables say of a process: its place among the ranks, and which job on its host it belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..foundation import LaunchEnvironmentError


@dataclass(frozen=True)
class Found:
    """A rank that `engine` has started.

    job: tells its job from others that this user has on this host. root: the host of rank 0, where the engine says it.
    """

    engine: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    job: str
    root: str = ""


def numbers(environ: Mapping[str, str], engine: str, names: Sequence[str]) -> list[int]:
    """The integers in these variables.

    Raises:
        LaunchEnvironmentError: one is missing, or holds something else.
    """
    require(environ, engine, names)
    values = []
    for name in names:
        try:
            values.append(int(environ[name]))
        except ValueError:
            raise LaunchEnvironmentError(
                f"{name} is {environ[name]!r}, and {engine} would set an integer: remove its variables to run the "
                "script as one worker, or start it anew"
            ) from None
    return values


def require(environ: Mapping[str, str], engine: str, names: Sequence[str]) -> None:
    """Raise where one of the variables is missing, by which `engine` tells a rank its place."""
    missing = [name for name in names if not environ.get(name)]
    if missing:
        there = [name for name in names if name not in missing]
        raise LaunchEnvironmentError(
            f"{engine} has set {', '.join(there) or 'no variable'} but not {', '.join(missing)}: start the script by "
            f"{engine} itself, or with `tfdp run`; without these variables it runs as one worker"
        )
