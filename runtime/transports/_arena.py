"""The memory that all ranks of one host share: how it is laid out, and the words in it.

It is a memfd made by the launcher and inherited: nothing appears in /dev/shm, its size is not bounded by that of
/dev/shm, and the kernel frees it with the last process, however that ended.

    control   magic, size, slot bytes | abort word | per rank: sequence word, state word, word of calls that are over
    reasons   per writer (each rank, then the launcher): the text behind an abort
    headers   per rank two (by parity of the sequence number): what the rank calls
    slots     per rank two (by the same parity): the data

In a job on several hosts no data is in it, and behind it stands a second one, in which the ranks of this host meet by
themselves, numbered by their local rank.
"""

import ctypes
import mmap
import os
import platform
import stat
import struct
import sys
import threading
from collections.abc import Callable

from ..foundation import LaunchEnvironmentError, TransportError

HEADER_BYTES = 8192
DEFAULT_BYTES = 64 * 2**20
_SLOT_MINIMUM = 1024  # room for a cache line of each of the six dtypes that can be reduced, and their results
_MAGIC = 0x7466_6470_0001
_PREAMBLE = struct.Struct("<QQQQ")  # the last is where the one of this host begins, 0 for none
_ABORT_AT, _WORDS_AT, _LINE = 64, 128, 64  # one cache line each, so that writers do not disturb one another
_REASON_BYTES = 2048
_LENGTH = struct.Struct("<I")

RUNNING, FINISHED, LEFT, ENDING = 0, 1, 2, 3
_WORDS = 3  # of each rank


def _no_fence() -> None:
    pass


def make_fence() -> Callable[[], None]:
    """A full memory barrier, for one thread at a time."""
    # x86-64 keeps stores in order and loads in order (TSO), which is all that "write the data, then the word" and
    # "read the word, then the data" need. aarch64, POWER and RISC-V do not. Letting go of a lock (a store-release) and
    # taking it again (a load-acquire) is the full barrier that can be had from Python: nothing before the release
    # moves behind it, nothing after the acquire moves before it, and the two do not change places.
    if platform.machine() in ("x86_64", "i686"):
        return _no_fence
    lock = threading.Lock()
    lock.acquire()

    def fence() -> None:
        lock.release()
        lock.acquire()

    return fence


class Arena:
    """The shared memory of a job of `size` ranks on one host, mapped into this process."""

    def __init__(self, fd: int, size: int) -> None:
        """Map what the launcher made.

        Raises:
            LaunchEnvironmentError: `fd` is not the arena of a job of `size` ranks.
        """
        try:
            self._check(fd)
            self._map = mmap.mmap(fd, 0)
        except (OSError, ValueError) as error:
            raise LaunchEnvironmentError(
                f"file descriptor {fd} is not the shared memory of a tfdp job ({error}). Probably this process was "
                "started by a rank and not by `tfdp run`: file descriptors are not passed on to grandchildren. Start "
                "it with `tfdp run`, or remove the TFDP_* variables from its environment to run it as one worker"
            ) from None
        magic, found, self.slot_bytes, self._beside_at = _PREAMBLE.unpack_from(self._map, 0)
        if magic != _MAGIC or found != size:
            raise LaunchEnvironmentError(
                f"file descriptor {fd} is not the shared memory of a job of {size} ranks. Start the script with "
                "`tfdp run`, or remove the TFDP_* variables from its environment to run it as one worker"
            )
        self._lay_out(size, 0)

    def _lay_out(self, size: int, at: int) -> None:
        self.size = size
        self.view = memoryview(self._map)[at:]
        self._words: memoryview[int] = self.view[: _control_bytes(size)].cast("I")
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map)) + at
        self._reasons_at, self._headers_at, self._slots_at, _ = _layout(size, self.slot_bytes)

    @staticmethod
    def _check(fd: int) -> None:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size < 4096:
            raise ValueError("it is something else")

    def beside(self, rank: int) -> "Arena | None":
        """That of this host's ranks in a job on several; what `rank` aborts there, and what is aborted, is the job."""
        return _Beside(self, rank) if self._beside_at else None

    @staticmethod
    def create(size: int, data_bytes: int, local_size: int | None = None) -> int:
        """A new arena with `data_bytes` for the data of all ranks together; returns its file descriptor.

        local_size: how many ranks this host has of a job on several.

        Raises:
            TransportError: too little for so many ranks, or the system has no room.
        """
        sharing = local_size or size
        slot_bytes = data_bytes // (2 * sharing) // 64 * 64
        if slot_bytes < _SLOT_MINIMUM:
            raise TransportError(
                f"TFDP_SHM_BYTES is {data_bytes}: {sharing} ranks need at least {2 * sharing * _SLOT_MINIMUM} bytes"
            )
        if not hasattr(os, "memfd_create"):
            raise TransportError(f"several ranks on one host need Linux; this is {sys.platform}")
        first_bytes = slot_bytes if local_size is None else 0
        end = _pages(_layout(size, first_bytes)[-1])
        total = end if local_size is None else end + _layout(local_size, slot_bytes)[-1]
        fd = os.memfd_create("tfdp")
        try:
            os.ftruncate(fd, total)
            os.pwrite(fd, _PREAMBLE.pack(_MAGIC, size, first_bytes, 0 if local_size is None else end), 0)
            if local_size is not None:
                os.pwrite(fd, _PREAMBLE.pack(_MAGIC, local_size, slot_bytes, 0), end)
        except OSError as error:
            os.close(fd)
            raise TransportError(f"no {total} bytes of shared memory: {error}. Set TFDP_SHM_BYTES lower") from None
        return fd

    # Words. Each is one aligned 32-bit load or store, which no processor tears.

    def sequence(self, rank: int) -> int:
        """How many times `rank` has published, modulo 2**32."""
        return self._words[_word(rank, 0)]

    def set_sequence(self, rank: int, value: int) -> None:
        self._words[_word(rank, 0)] = value

    def sequence_address(self, rank: int) -> int:
        """Where the word is in this process, for the futex."""
        return self._address + 4 * _word(rank, 0)

    def state(self, rank: int) -> int:
        """RUNNING, FINISHED (ended without an error), LEFT (the process goes on without the job) or ENDING (the script
        has ended, and the process waits until the others' have)."""
        return self._words[_word(rank, 1)]

    def set_state(self, rank: int, value: int) -> None:
        self._words[_word(rank, 1)] = value

    def over(self, rank: int) -> int:
        """How many of TensorFlow's collectives `rank` is through with, modulo 2**32."""
        return self._words[_word(rank, 2)]

    def set_over(self, rank: int, value: int) -> None:
        self._words[_word(rank, 2)] = value

    # The end of the job.

    def abort(self, writer: int, reason: str) -> None:
        """Say to all that the job is ending. `writer` is a rank, or `size` for the launcher. The first one wins."""
        if self._words[_ABORT_AT // 4]:
            return
        text = reason.encode("utf-8", "replace")[: _REASON_BYTES - _LENGTH.size]
        at = self._reasons_at + writer * _REASON_BYTES
        self.view[at : at + _LENGTH.size] = _LENGTH.pack(len(text))
        self.view[at + _LENGTH.size : at + _LENGTH.size + len(text)] = text
        make_fence()()
        self._words[_ABORT_AT // 4] = writer + 1

    def aborted(self) -> str | None:
        """Why the job is ending, or None while it is not."""
        writer = self._words[_ABORT_AT // 4]
        if not writer:
            return None
        make_fence()()
        at = self._reasons_at + (writer - 1) * _REASON_BYTES
        length: int = _LENGTH.unpack_from(self._map, at)[0]
        return bytes(self.view[at + _LENGTH.size : at + _LENGTH.size + length]).decode("utf-8", "replace")

    def aborted_by(self) -> int | None:
        """The writer whose abort counts, or None."""
        writer: int = self._words[_ABORT_AT // 4]
        return writer - 1 if writer else None

    # Headers and slots.

    def header(self, rank: int, parity: int) -> memoryview:
        """The header that goes with the publications of this parity."""
        at = self._headers_at + (2 * rank + parity) * HEADER_BYTES
        return self.view[at : at + HEADER_BYTES]

    def slot_at(self, rank: int, parity: int) -> int:
        """Where in `view` the `slot_bytes` of data begin."""
        return int(self._slots_at + (2 * rank + parity) * self.slot_bytes)


class _Beside(Arena):
    """The part of an arena in which this host's ranks meet. The job ends in the other part."""

    def __init__(self, whole: Arena, rank: int) -> None:
        self._map, self._whole, self._job_rank = whole._map, whole, rank
        _, size, self.slot_bytes, self._beside_at = _PREAMBLE.unpack_from(self._map, whole._beside_at)
        self._lay_out(size, whole._beside_at)

    def abort(self, writer: int, reason: str) -> None:
        """As of the job: the writer is this process's rank."""
        assert writer < self.size
        self._whole.abort(self._job_rank, reason)

    def aborted(self) -> str | None:
        """As of the job."""
        return self._whole.aborted()

    def aborted_by(self) -> int | None:
        """As of the job."""
        return self._whole.aborted_by()


def _word(rank: int, which: int) -> int:
    return (_WORDS_AT + (_WORDS * rank + which) * _LINE) // 4


def _pages(count: int) -> int:
    return -(-count // 4096) * 4096


def _control_bytes(size: int) -> int:
    return _pages(_WORDS_AT + _WORDS * size * _LINE)


def _layout(size: int, slot_bytes: int) -> tuple[int, int, int, int]:
    """Where the reasons, the headers and the slots begin, and the end."""
    reasons = _control_bytes(size)
    headers = reasons + _pages((size + 1) * _REASON_BYTES)
    slots = headers + size * 2 * HEADER_BYTES
    return reasons, headers, slots, slots + size * 2 * slot_bytes
