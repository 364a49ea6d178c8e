"""Which process is the rank: the first that joins. What it starts, by whatever means, is its child and cannot join."""

import errno
import fcntl
import os
import signal
import sys
from collections.abc import Mapping
from multiprocessing.process import parent_process
from types import FrameType

from ..clusters import local
from ..foundation import LaunchEnvironmentError, TfdpError

# What Python calls a script's module where a process that multiprocessing has spawned imports it.
_IMPORTED_AGAIN = "__mp_main__"
_GUARD = '`if __name__ == "__main__":`'


def in_multiprocessing() -> bool:
    """Whether multiprocessing, or what stands on it, has started this process."""
    return parent_process() is not None or _imports_script()


def refuse_child(environ: Mapping[str, str], forked_from: int) -> None:
    """Raise where a rank has started this process, and the process is none itself.

    forked_from: the process that has joined and of which this one is a fork; 0 where there is none.

    Raises:
        TfdpError: with what this process is, and what to do.
    """
    rank, joined = environ[local.RANK], forked_from or int(environ.get(local.JOINED) or os.getpid())
    started = in_multiprocessing()
    if not started and joined == os.getpid():
        return
    how = " (multiprocessing)" if started else ""
    said = f"this process is a child of rank {rank}{how}; only the rank itself joins the job"
    if _imports_script():
        said = f"{said}: move dp.init(), and all that needs it, under {_GUARD}"
        _end_rank(joined, said)
    elif started or forked_from:
        said = f"{said}: call dp.init() in the script itself, and not in a function that another process runs"
    else:
        said = f"{said}: remove the TFDP_* variables from its environment to run it as one worker"
    raise TfdpError(said)


def _end_rank(joined: int, said: str) -> None:
    """End the rank, where it has joined: a pool would start another process in this one's place, for ever."""
    try:
        relative = joined != os.getpid() and os.getpgid(joined) == os.getpgrp()
    except ProcessLookupError:
        return  # it has ended by itself
    if relative:
        print(f"tfdp: {said}", file=sys.stderr, flush=True)
        os.kill(joined, signal.SIGTERM)


def claim(memory_fd: int, rank: int) -> None:
    """Be the rank, until this process ends; call it again where another descriptor of the memory has been closed.

    The kernel keeps the claim: it is the process's own, a fork has none of it, and it needs no word from the others.

    Raises:
        LaunchEnvironmentError: another process is this rank.
    """
    try:
        fcntl.lockf(memory_fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, rank)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise LaunchEnvironmentError(
                f"another process is rank {rank} already; process {os.getpid()} cannot be it too. One process of each "
                "rank calls dp.init(): the training script itself"
            ) from None
        # A descriptor that leads nowhere: the store, which comes next, says so.


def _imports_script() -> bool:
    """Whether the module's code of the script runs, in a process that does not know yet who has started it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == _IMPORTED_AGAIN:
            return True
        frame = frame.f_back
    return False
