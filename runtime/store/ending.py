"""How a rank ends that fails, or that another rank's failure ends: with words, and at once for the others."""

import os
import signal
import sys
import threading
from traceback import format_exception_only
from types import FrameType, TracebackType

from ..foundation import REASON_SECONDS, JobAborted, gist, is_users, reason_within, site_of
from .client import SocketStore

_TEXT = 300
_WHOLE_TEXT = 2**20


def speak_at_the_end(store: SocketStore, rank: int) -> None:
    """See to the last words of this process, the rank of a job of several.

    An exception that nobody catches is told to the other ranks at once: the process may take long to end, as when
    threads of the script go on. And where the launcher has to stop this rank because another one has failed, it says
    where it was. A handler that the script has for SIGTERM, or gets later, is left alone.
    """
    words = _LastWords(store, rank)
    sys.excepthook = words.tell
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, words.stop)


class _LastWords:
    """What this process, and none that is forked from it, says when it ends."""

    def __init__(self, store: SocketStore, rank: int) -> None:
        self._store, self._rank, self._pid = store, rank, os.getpid()
        self._hook = sys.excepthook
        self._told = False

    def tell(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        """An exception that nobody has caught, to the others and then to the user."""
        said = _said(kind, error)
        if os.getpid() == self._pid and not said.startswith("JobAborted: ") and not self._is_an_echo(kind):
            self._store.fail(f"rank {self._rank} ended with {said} (at {_raised_at(traceback)})")
            self._told = True
        if os.getpid() == self._pid:
            self._store.last_words("".join(format_exception_only(kind, error))[:_WHOLE_TEXT])
        self._hook(kind, error, traceback)

    def _is_an_echo(self, kind: type[BaseException]) -> bool:
        """Whether a connection between TensorFlow's servers was lost because a rank at its other end has ended."""
        if kind.__name__ != "UnavailableError" or not kind.__module__.startswith("tensorflow."):
            return False
        return reason_within(lambda: self._store.aborted, REASON_SECONDS) is not None

    def stop(self, number: int, frame: FrameType | None) -> None:
        """SIGTERM: with words if another rank's failure is the reason, else as if there were no handler."""
        reason = self._store.aborted
        if reason is not None and not self._told and os.getpid() == self._pid:
            raise JobAborted(f"rank {self._rank} was at {site_of(frame)} when the job ended: {reason}")
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _said(kind: type[BaseException], error: BaseException) -> str:
    """Kind and text of an error in one line; of one that a library has wrapped, its own."""
    return gist(f"{kind.__name__}: {error}")[:_TEXT]


def _raised_at(traceback: TracebackType | None) -> str:
    """The innermost line of the script that an exception has passed."""
    found = "an unknown place"
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if is_users(path):
            found = f"{path}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found
