"""In the process of pytest: Python programs that `subprocess` starts are forks of a process with TensorFlow."""

import contextlib
import ctypes
import dataclasses
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forking import parent, program

# What starts programs by exec, whatever stands in its place.
EXEC = subprocess.Popen
_SESSION = pytest.StashKey["Forking"]()
_PR_SET_CHILD_SUBREAPER = 36
_MAIN = "import sys, json; sys.path[0] = sys.argv[1]; from forking.parent import main; main(*json.loads(sys.argv[2]))"


class Parent:
    """The process that forks; it ends with this one."""

    def __init__(self, environ: dict[str, str]) -> None:
        self._end, theirs = socket.socketpair()
        # A thread of NumPy's would not be there in the forks.
        given = {**environ, "OPENBLAS_NUM_THREADS": "1"}
        with theirs:
            where = [str(Path(__file__).parents[1]), json.dumps([theirs.fileno(), given])]
            command = [sys.executable, "-c", _MAIN, *where]
            self._process = EXEC(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=given)

    def fork(self, wanted: program.Program, fds: list[int]) -> int:
        """Start it as a child of this process; its number."""
        with _adopting():
            parent.send(self._end, dataclasses.asdict(wanted), fds)
            answer = parent.receive(self._end)
        if answer is None:
            raise ChildProcessError(f"the process that forks has ended with status {self._process.wait()}")
        return answer[0]["pid"]

    def close(self) -> None:
        """Let it end."""
        self._end.close()
        self._process.wait()


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Meanwhile, orphans among this process's descendants become its children, and not those of the first process."""
    _adopt(True)
    try:
        yield
    finally:
        _adopt(False)


def _adopt(orphans: bool) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, int(orphans), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


class Forking:
    """`subprocess.Popen` of a session of tests, with a parent for each environment that TensorFlow is imported in."""

    def __init__(self) -> None:
        self._parents: dict[frozenset[tuple[str, str]], Parent] = {}

    def popen(self) -> type[subprocess.Popen]:
        """To be put in place of `subprocess.Popen`."""
        forking = self

        class Popen(EXEC):
            def _execute_child(self, *args: Any) -> None:
                call = program.arguments(self, args)
                wanted = program.asked(call)
                if wanted is None or call["preexec_fn"] or call["pass_fds"]:
                    super()._execute_child(*args)
                else:
                    pid = forking.parent(wanted.environ).fork(wanted, program.streams(call))
                    program.started(self, call, pid)

        return Popen

    def parent(self, environ: dict[str, str]) -> Parent:
        """The one for programs with this environment."""
        key = frozenset(program.at_import(environ).items())
        if key not in self._parents:
            self._parents[key] = Parent(program.at_import(environ))
        return self._parents[key]

    def close(self) -> None:
        """End them."""
        for each in self._parents.values():
            each.close()


def wanted() -> bool:
    """Whether forks are to be used at all."""
    return not os.environ.get("TFDP_TESTS_EXEC")


@contextlib.contextmanager
def in_use(config: pytest.Config) -> Iterator[None]:
    """Meanwhile `subprocess` starts Python programs as forks. The parents live as long as the session."""
    if not wanted():
        yield
        return
    if _SESSION not in config.stash:
        config.stash[_SESSION] = Forking()
        config.add_cleanup(config.stash[_SESSION].close)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("subprocess.Popen", config.stash[_SESSION].popen())
        yield
