"""The job's small key-value store, kept by the launcher.

A rank reaches it over one end of a socketpair that it inherited: there is no port and no file, so nobody outside the
job can write to it, and what comes out of it was put there by a rank of the same job. That is why what is fetched may
be unpickled. The end of the connection means that the launcher is gone; the rank then ends itself.
"""

import atexit
import contextlib
import itertools
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ..foundation import (
    JobAborted,
    LaunchEnvironmentError,
    RankFinishedError,
    StoreEvictedError,
    StoreTimeout,
    call_site,
)

# A frame: what it is, the request it belongs to, a number (readers or publisher), the lengths of key and value.
FRAME = struct.Struct("!BIiIQ")
(
    *(HELLO, WELCOME, PUBLISH, FETCH, CANCEL, VALUE, GONE, FINISHED, ABORT, REFUSED, LAST_WORDS, GOODBYE, MET, GATHER),
    ECHOES,
) = range(1, 16)
ANYONE = -1
LAST = "variables at the end"  # what ranks gather when their scripts have ended
_COUNT = struct.Struct("!Q")


class Frame(NamedTuple):
    """One message between a rank and the launcher."""

    kind: int
    request: int = 0
    number: int = 0
    key: str = ""
    value: bytes = b""

    def buffers(self) -> list[bytes]:
        """What to send, without a copy of the value."""
        key = self.key.encode()
        return [FRAME.pack(self.kind, self.request, self.number, len(key), len(self.value)) + key, self.value]


class Store(Protocol):
    """What a `Job` offers of the store. Safe to use from several threads."""

    def publish(self, key: str, value: bytes, readers: int | None = None) -> None:
        """Put a value under a key, in place of an earlier one; never waits for another rank.

        The value is dropped when `readers` ranks (default: all others) have fetched it, and earlier when the store is
        full (TFDP_STORE_BYTES, default 4 GiB; the oldest goes first).
        """

    def fetch(self, key: str, timeout: float | None = None, publisher: int | None = None) -> bytes:
        """The value under the key, waiting for it up to `timeout` seconds (default: the stall limit).

        `publisher` names the rank that is to publish it: should that rank end without having done so, the wait ends at
        once instead of by the timeout.

        Raises:
            StoreTimeout: nobody published the key in time.
            StoreEvictedError: it was published and is gone.
            RankFinishedError: `publisher`, or every other rank, has ended without publishing it.
            JobAborted: another rank has failed.
        """

    def gather(self, key: str, value: bytes) -> list[bytes]:
        """What every rank says under a key, by rank; each says something once. Waits up to the stall limit.

        Raises:
            StoreTimeout, RankFinishedError, JobAborted: as `fetch`.
        """

    def spread(self, words: bytes) -> None:
        """Tell the ranks of other hosts what this one has published where the ranks meet; never waits for them."""


class SoloStore:
    """The store of a job of one, where there is nobody to read from."""

    def gather(self, key: str, value: bytes) -> list[bytes]:  # noqa: ARG002
        return [value]

    def spread(self, words: bytes) -> None:
        pass

    def publish(self, key: str, value: bytes, readers: int | None = None) -> None:
        pass

    def fetch(self, key: str, timeout: float | None = None, publisher: int | None = None) -> bytes:  # noqa: ARG002
        raise RankFinishedError(f"nobody can publish {key!r}: this job has one worker")


class _Reply:
    """What a waiting `fetch` gets."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.message = Frame(0)

    def give(self, message: Frame) -> None:
        """Hand over the first answer; a later one does not count."""
        if not self.arrived.is_set():
            self.message = message
            self.arrived.set()


class SocketStore:
    """A rank's connection to the store in the launcher."""

    def __init__(self, fd: int, rank: int, job: str, stall_seconds: float, lost: Callable[[], None]) -> None:
        """Connect over the inherited `fd`; `lost` is called, on another thread, when the launcher is gone.

        Raises:
            LaunchEnvironmentError: `fd` does not lead to the launcher of this job.
        """
        self._rank = rank
        self._stall_seconds = stall_seconds
        self._lost = lost
        self._sending = threading.Lock()
        self._requests = itertools.count(1)
        self._waiting: dict[int, _Reply] = {}
        self._aborted: str | None = None
        self._socket = _connect(fd)
        self._greet(job)
        atexit.register(self._goodbye, os.getpid())
        threading.Thread(target=self._listen, name="tfdp-store", daemon=True).start()

    @property
    def aborted(self) -> str | None:
        """Why the job is ending, or None while it is not."""
        return self._aborted

    def fail(self, reason: str) -> None:
        """Tell the launcher and all ranks that this one has failed; never waits for them."""
        with contextlib.suppress(OSError):  # nobody is left to be told
            self._send(Frame(ABORT, 0, self._rank, "", reason.encode()))

    def last_words(self, text: str) -> None:
        """Tell the launcher the end of the traceback that this rank is about to write: kind and message."""
        with contextlib.suppress(OSError):
            self._send(Frame(LAST_WORDS, 0, self._rank, "", text.encode("utf-8", "backslashreplace")))

    def echoes(self) -> None:
        """Tell the launcher that what this rank writes rank 0 writes, too."""
        with contextlib.suppress(OSError):
            self._send(Frame(ECHOES, 0, self._rank))

    def spread(self, words: bytes) -> None:
        with contextlib.suppress(OSError):  # whoever serves this host is gone, and this process ends
            self._send(Frame(MET, 0, self._rank, "", words))

    def _goodbye(self, pid: int) -> None:
        """What a process that ends in order says last, so that its end is known for what it is."""
        if pid == os.getpid():
            with contextlib.suppress(OSError):
                self._send(Frame(GOODBYE, 0, self._rank))

    def publish(self, key: str, value: bytes, readers: int | None = None) -> None:
        self._send(Frame(PUBLISH, 0, -1 if readers is None else readers, key, value))

    def gather(self, key: str, value: bytes) -> list[bytes]:
        answer = self._asked(Frame(GATHER, 0, self._rank, key, value), self._stall_seconds)
        return unpacked(answer)

    def fetch(self, key: str, timeout: float | None = None, publisher: int | None = None) -> bytes:
        wanted = Frame(FETCH, 0, ANYONE if publisher is None else publisher, key)
        return self._asked(wanted, self._stall_seconds if timeout is None else timeout)

    def _asked(self, wanted: Frame, limit: float) -> bytes:
        """The value that answers a frame."""
        key = wanted.key
        request, reply = next(self._requests) % 2**32, _Reply()
        self._waiting[request] = reply
        try:
            if self._aborted is not None:
                raise JobAborted(f"rank {self._rank} cannot fetch {key!r} at {call_site()}: {self._aborted}")
            self._send(wanted._replace(request=request))
            if not reply.arrived.wait(limit):
                self._send(Frame(CANCEL, request))
                raise StoreTimeout(
                    f"rank {self._rank} has waited {limit:g} s at {call_site()} for {key!r}, which nobody has published"
                )
        finally:
            del self._waiting[request]
        return self._value(key, reply.message)

    def _value(self, key: str, message: Frame) -> bytes:
        if message.kind == VALUE:
            return message.value
        said = message.value.decode()
        if message.kind == GONE:
            raise StoreEvictedError(f"rank {self._rank} cannot fetch {key!r}: {said}")
        if message.kind == FINISHED:
            raise RankFinishedError(f"rank {self._rank} cannot fetch {key!r}: {said} (at {call_site()})")
        raise JobAborted(f"rank {self._rank} was waiting for {key!r} at {call_site()} when the job ended: {said}")

    def _greet(self, job: str) -> None:
        try:
            self._send(Frame(HELLO, 0, self._rank, job, str(os.getpid()).encode()))
            answer = _receive(self._socket)
        except (OSError, EOFError) as error:
            raise LaunchEnvironmentError(f"the launcher of this job does not answer ({error})") from None
        if answer.kind != WELCOME:
            raise LaunchEnvironmentError(answer.value.decode())

    def _send(self, message: Frame) -> None:
        with self._sending:
            for part in message.buffers():
                self._socket.sendall(part)

    def _listen(self) -> None:
        try:
            while True:
                message = _receive(self._socket)
                if message.kind == ABORT:
                    self._aborted = message.value.decode()
                    for reply in list(self._waiting.values()):
                        reply.give(message)
                elif message.request in self._waiting:
                    self._waiting[message.request].give(message)
        except (OSError, EOFError):
            self._lost()


def _connect(fd: int) -> socket.socket:
    try:
        connection = socket.socket(fileno=fd)
        if connection.family != socket.AF_UNIX:
            connection.detach()
            raise OSError("it is something else")
    except OSError as error:
        raise LaunchEnvironmentError(
            f"file descriptor {fd} does not lead to the launcher of a tfdp job ({error}). Probably this process was "
            "started by a rank and not by `tfdp run`: file descriptors are not passed on to grandchildren. Start it "
            "with `tfdp run`, or remove the TFDP_* variables from its environment to run it as one worker"
        ) from None
    connection.setblocking(True)
    connection.set_inheritable(False)
    return connection


def _receive(connection: socket.socket) -> Frame:
    kind, request, number, key, value = FRAME.unpack(_exactly(connection, FRAME.size))
    return Frame(kind, request, number, _exactly(connection, key).decode(), _exactly(connection, value))


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray(count)
    view, done = memoryview(data), 0
    while done < count:
        got = connection.recv_into(view[done:])
        if not got:
            raise EOFError("the connection has ended")
        done += got
    return bytes(data)


def packed(values: Sequence[bytes]) -> bytes:
    """Several values as one."""
    return b"".join([_COUNT.pack(len(values)), *(_COUNT.pack(len(value)) for value in values), *values])


def unpacked(data: bytes) -> list[bytes]:
    """The values of which `packed` has made one."""
    (count,) = _COUNT.unpack_from(data)
    lengths = [_COUNT.unpack_from(data, _COUNT.size * (1 + number))[0] for number in range(count)]
    values, at = [], _COUNT.size * (1 + count)
    for length in lengths:
        values.append(data[at : at + length])
        at += length
    return values


def parsed(arrived: bytearray) -> list[Frame]:
    """The whole frames at the beginning of what has arrived, which are taken from it."""
    messages, at = [], 0
    with memoryview(arrived) as view:
        while len(view) >= at + FRAME.size:
            kind, request, number, key_length, value_length = FRAME.unpack_from(view, at)
            key_at = at + FRAME.size
            value_at = key_at + key_length
            end = value_at + value_length
            if len(view) < end:
                break
            key, value = bytes(view[key_at:value_at]).decode("utf-8", "replace"), bytes(view[value_at:end])
            messages.append(Frame(kind, request, number, key, value))
            at = end
    del arrived[:at]
    return messages


def end_without_launcher() -> None:
    """End this process at once: there is nobody left to report to, and the other ranks are ending too."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(1)
