"""What the hooks in the ranks tell: one that trains a model of its own, without having joined; what one ends by.

`at_start` has their side.
"""

import contextlib
import json
import os
from collections.abc import Collection, Mapping

from ..clusters import local
from .report import listed

_AT_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "at_start")
_PYTHONPATH = "PYTHONPATH"


class Unjoined:
    """The launcher's end of what its ranks, and all that these start, can tell it."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._arrived = b""
        self.ranks: list[int] = []
        self.first: tuple[str, int, str] | None = None  # where the first trains, and the script that it runs
        self._joined = False
        self._gradients: dict[int, str] = {}
        # Of the ranks that end by an exception: its kind and message, and when their exit handlers were through.
        self.said: dict[int, bytes] = {}
        self.through: dict[int, float] = {}

    def variables(self, rank: int) -> dict[str, str]:
        """For a rank's environment. By its path the pipe can be opened wherever file descriptors are not inherited."""
        return {local.UNJOINED: f"{rank} /proc/{os.getpid()}/fd/{self._writer}"}

    def read(self) -> None:
        """Take in what has been told."""
        with contextlib.suppress(BlockingIOError):
            self._arrived += os.read(self._reader, 2**16)
        *lines, self._arrived = self._arrived.split(b"\n")
        for line in lines:
            told = json.loads(line)
            if isinstance(told, dict):
                self.said[told["rank"]] = told["said"].encode("utf-8", "backslashreplace")
                self.through[told["rank"]] = told["at"]
                continue
            rank, what, path, number, script = told
            self._joined = self._joined or what == "joined"
            if what == "gradients":
                self._gradients.setdefault(rank, script or path)
            elif what == "trains":
                self.ranks.append(rank)
                self.first = self.first or (path, number, script)

    def suspicion(self) -> str | None:
        """What to say at the end of a job that nobody has joined, where several ranks may have trained all the same."""
        if self._joined or len(self._gradients) < 2:
            return None
        ranks = len(self._gradients)
        return (
            f"{ranks} processes took gradients, and none has called dp.init(): if they trained, {ranks} independent "
            f"copies were trained. {_advice(_shown(next(iter(self._gradients.values()))))}"
        )

    def close(self) -> None:
        """Take in what has been told until now, and nothing any more."""
        self.read()
        for end in (self._reader, self._writer):
            os.close(end)


def environment(base: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    """`base` as this job's ranks get it: with the hook, where they have somebody to tell, and without another job's."""
    found = {name: value for name, value in base.items() if name != local.UNJOINED}
    given = base.get(_PYTHONPATH)
    folders = [folder for folder in given.split(os.pathsep) if folder != _AT_START] if given else []
    if told:
        folders.insert(0, _AT_START)
    if folders:
        found[_PYTHONPATH] = os.pathsep.join(folders)
    else:
        found.pop(_PYTHONPATH, None)
    return {**found, **told}


def independent_copies(size: int, path: str, line: int, script: str, ranks: Collection[int] = ()) -> str:
    """What to say of a script that trains and never joins, before it has trained anything.

    path: of the file that trains, empty if unknown. line: where it trains, 0 if unknown. script: the file that is run,
    empty if unknown. ranks: those that came to it, if known.
    """
    name = _shown(path)
    trains = f"{name}:{line} trains" if name and line else f"{name or 'the script'} trains"
    copies = f"{size} independent copies would have been trained"
    if ranks and len(some := sorted(set(ranks))) < size:
        copies = f"{listed(some)} would have trained {'a model of its' if len(some) == 1 else 'models of their'} own"
    return f"{copies}: {trains}, and nothing has called dp.init(). {_advice(_shown(script))}"


def _shown(path: str) -> str:
    return os.path.relpath(path) if path and not os.path.relpath(path).startswith(os.pardir) else path


def _advice(name: str) -> str:
    migrate = f"`tfdp migrate {name or 'SCRIPT'}`"
    return f"Type {migrate} first, or `tfdp run --independent` with the same arguments if that is meant"
