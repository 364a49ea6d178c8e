"""Tells the launcher that a rank is ending by an exception, once the last of its exit handlers has run.

Loaded by its file before anything of the script's: what is registered first runs last. The exception is Python's own
record of the one that nobody has caught; one that the script has printed and gone on after is not there.
"""

import atexit
import json
import os
import select
import sys
import time
from contextlib import suppress


def install(told: str) -> None:
    """`told` is the rank, and the path of the launcher's pipe. What a rank starts is no child of the launcher's."""
    rank, _, launcher = told.partition(" ")
    if launcher.split(os.sep)[2:3] == [str(os.getppid())]:
        atexit.register(_tell, launcher, int(rank), os.getpid())


def _tell(launcher: str, rank: int, pid: int) -> None:
    error = getattr(sys, "last_value", None)
    if error is None or os.getpid() != pid:
        return
    import traceback

    said = "".join(traceback.format_exception_only(type(error), error))
    message = _message(rank, said)
    if len(message) > select.PIPE_BUF:  # longer ones may arrive in pieces, between those of others
        message = _message(rank, "")
    with suppress(OSError):  # the launcher is gone, and so is who it would tell
        os.write(os.open(launcher, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC), message)


def _message(rank: int, said: str) -> bytes:
    return json.dumps({"rank": rank, "said": said, "at": time.monotonic()}).encode() + b"\n"
