"""The processes of the ranks: started, watched, ended, and nothing of them left behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from . import guardian

_PR_SET_PDEATHSIG = 1


@dataclass(eq=False)
class Child:
    """One rank's process, the leader of a process group of its own. `status` is its exit status, -N for signal N.

    over_at: when it ended, or was found to stand still for good.
    """

    rank: int
    process: "subprocess.Popen[bytes]"
    status: int | None = field(default=None)
    stopped_seconds: float = field(default=0.0)
    over_at: float | None = field(default=None)

    @property
    def pid(self) -> int:
        """Of the process and of its group."""
        return self.process.pid

    def signal(self, number: int) -> None:
        """Send a signal to the rank and to what it has started in its group."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


class Guardian:
    """The process that outlives a killed launcher just long enough to end the ranks."""

    def __init__(self) -> None:
        # -I -S: it starts in a few milliseconds and imports nothing of the user's.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__], stdin=subprocess.PIPE, start_new_session=True
        )

    def watch(self, pid: int) -> None:
        """This group is to end with the launcher."""
        self._say(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        """This group has ended."""
        self._say(f"-{pid}\n")

    def dismiss(self) -> None:
        """Let the guardian end; call it when all groups have ended."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()


def start(rank: int, command: Sequence[str], environment: Mapping[str, str], fds: Sequence[int]) -> Child:
    """Start one rank with pipes for its output; of our file descriptors it gets `fds`.

    Call it from the main thread, before other threads are started: code runs between fork and exec, and the kernel
    ties the child's life to the thread that forked it.

    Raises:
        OSError: the command cannot be run.
    """
    process = subprocess.Popen(
        list(command),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        pass_fds=tuple(fds),
        preexec_fn=_prepare(os.getpid()),  # noqa: PLW1509 - no other thread is running yet
    )
    return Child(rank, process)


def _prepare(launcher: int) -> Callable[[], None]:
    prctl = ctypes.CDLL(None).prctl

    def prepare() -> None:
        os.setpgid(0, 0)
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != launcher:  # it ended before the line above
            os._exit(1)

    return prepare


def reap(children: Sequence[Child], guardian_process: Guardian) -> list[Child]:
    """The children that have ended since the last call, in no order, with `status` set and their groups empty."""
    ended = []
    for child in children:
        if child.status is None and _has_ended(child.pid):
            # While it is not waited for, its number is not given to another process: the group is surely its own.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            guardian_process.forget(child.pid)
            child.status = child.process.wait()
            child.over_at = child.over_at or time.monotonic()
            ended.append(child)
    return ended


def end(children: Sequence[Child], guardian_process: Guardian) -> None:
    """Kill whatever still runs, and wait for it."""
    for child in children:
        child.signal(signal.SIGKILL)
    for child in children:
        if child.status is None:
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    reap(children, guardian_process)


def is_stopped(child: Child) -> bool:
    """Whether the process has been stopped by a signal and has not been continued."""
    try:
        with open(f"/proc/{child.pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"T"
    except OSError:
        return False


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def name_of_status(status: int) -> str:
    """`exit status 3` or `signal SIGKILL`."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def exit_status(status: int) -> int:
    """A child's status as the launcher's own: 128 + N for signal N, as shells do."""
    return status if status >= 0 else 128 - status
