"""How a rank ends that fails, or that another rank's failure ends: with words, and at once for the others."""

import os
import re
import signal
import sys
import threading
from types import FrameType, TracebackType

from tfdp.runtime.call_site import is_users, site_of
from tfdp.runtime.errors import JobAborted
from tfdp.runtime.store import SocketStore

_TEXT = 300
# How a line of a TensorFlow error begins that tells of a Python error inside a graph.
_NAMED = re.compile(r"\w+(Error|Aborted|Exception|Timeout): ")


def speak_at_the_end(store: SocketStore, rank: int) -> None:
    """See to the last words of this process, the rank of a job of several.

    An exception that nobody catches is told to the other ranks at once: the process may take long to end, as when
    threads of the script go on. And where the launcher has to stop this rank because another one has failed, it says
    where it was. A handler that the script has for SIGTERM, or gets later, is left alone.
    """
    _tell_exceptions(store, rank)
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        _say_where_stopped(store, rank)


def _tell_exceptions(store: SocketStore, rank: int) -> None:
    pid, before = os.getpid(), sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        said = _said(kind, error)
        if os.getpid() == pid and not said.startswith("JobAborted: "):
            store.fail(f"rank {rank} ended with {said} (at {_raised_at(traceback)})")
        before(kind, error, traceback)

    sys.excepthook = tell


def _said(kind: type[BaseException], error: BaseException) -> str:
    """Kind and text of an error in one line; of one that TensorFlow has wrapped, its own."""
    first, *more = str(error).splitlines() or [""]
    wrapped = next((line for line in more if _NAMED.match(line)), None)
    return (wrapped or f"{kind.__name__}: {first}")[:_TEXT]


def _raised_at(traceback: TracebackType | None) -> str:
    """The innermost line of the script that an exception has passed."""
    found = "an unknown place"
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if is_users(path):
            found = f"{path}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found


def _say_where_stopped(store: SocketStore, rank: int) -> None:
    pid = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:
        if store.aborted is not None and os.getpid() == pid:
            raise JobAborted(f"rank {rank} was at {site_of(frame)} when the job ended: {store.aborted}")
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, stop)
