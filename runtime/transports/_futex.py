"""Waiting on a 32-bit word that another process writes, without holding the GIL (Linux futex)."""

import ctypes
import errno
import os
import platform
import sys

from ..foundation import TransportError

_NUMBERS = {"x86_64": 202, "i686": 240, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}
_WAIT, _WAKE = 0, 1  # the shared forms: the private ones do not reach other processes
_EVERYONE = 2**31 - 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Futex:
    """`wait` and `wake` on addresses inside a shared mapping.

    Raises:
        TransportError: this system has no futex that we know how to call.
    """

    def __init__(self) -> None:
        machine = platform.machine()
        if sys.platform != "linux" or machine not in _NUMBERS:
            raise TransportError(
                f"the shared_memory transport needs Linux on one of {', '.join(_NUMBERS)}; this is {sys.platform} on "
                f"{machine}. Run the script as one worker, without `tfdp run`"
            )
        # CDLL and not PyDLL: ctypes lets go of the GIL around the call, which is the point of waiting here.
        libc = ctypes.CDLL(None, use_errno=True)
        self._yield = libc.sched_yield
        self._syscall = libc.syscall
        self._syscall.restype = ctypes.c_long
        self._number = ctypes.c_long(_NUMBERS[machine])

    def wait(self, address: int, seen: int, seconds: float) -> bool:
        """Sleep until a wake, a signal, or a change of the word from `seen` before the sleep; False after `seconds`."""
        whole = int(seconds)
        limit = _Timespec(whole, int((seconds - whole) * 1e9))
        ended: int = self._syscall(
            self._number, ctypes.c_void_p(address), _WAIT, ctypes.c_uint32(seen), ctypes.byref(limit), None, 0
        )
        return ended == 0 or ctypes.get_errno() != errno.ETIMEDOUT

    def wake(self, address: int) -> None:
        """Wake everyone who waits on the word."""
        self._syscall(self._number, ctypes.c_void_p(address), _WAKE, _EVERYONE, None, None, 0)

    def give_way(self) -> None:
        """Let another Python thread, or another process on this core, go first."""
        self._yield()


def worth_spinning(processes: int) -> bool:
    """Whether every process can have a core of its own, so that a short spin is not stolen from the awaited one."""
    return processes <= len(os.sched_getaffinity(0))
