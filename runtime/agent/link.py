"""One connection between two hosts of a job: authenticated, with heartbeats, and with an end that has a reason.

Before anything else each end proves that it knows the job's secret, by a keyed hash over fresh random numbers of both;
until then no more is read than the bytes of that proof. What follows is not encrypted: the secret keeps strangers out
of the job, and the network between the hosts is trusted with its data, as TensorFlow's own connections need it to be.
"""

import contextlib
import hashlib
import hmac
import os
import queue
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

_MAGIC = b"tfdp/1\r\n"
_NONCE, _PROOF = 32, 32
_PROVE_SECONDS = 10.0
_HEADER = struct.Struct("!BiQ")
_MOST_BYTES = 2**33
_BEAT_SECONDS = 1.0
_SILENT_SECONDS = 5.0
_CHUNK = 2**20


class Kind(IntEnum):
    """What a message between hosts is about; `rank` is the rank that it comes from or is for."""

    BEAT = 0
    HELLO = 1  # JSON: who comes
    PLAN = 2  # JSON: the job, once all have come
    REFUSED = 3  # text: why there will be none
    STORE = 4  # a frame of the store
    MET = 5  # what a rank has published where the ranks meet
    FINISHED = 6  # the rank has ended without an error
    ABORT = 7  # text: why the job ends; -1 where no rank is to blame
    GOODBYE = 8  # this host's ranks have ended in order


class Message(NamedTuple):
    """One message between hosts."""

    kind: Kind
    rank: int = -1
    payload: bytes = b""


class LinkError(Exception):
    """Why there is no link."""


class StrangerError(LinkError):
    """The other end does not know the secret, or is no host of a tfdp job."""


def prove(connection: socket.socket, secret: bytes, *, listening: bool) -> None:
    """Let both ends show that they know the secret. `listening` is for the end that has accepted.

    Raises:
        StrangerError: the other end does not, or has not said so within ten seconds.
    """
    connection.settimeout(_PROVE_SECONDS)
    began = time.monotonic()

    def take(count: int) -> bytes:
        data = b""
        while len(data) < count:
            if time.monotonic() - began > _PROVE_SECONDS:
                raise StrangerError("it took its time to say who it is")
            got = connection.recv(count - len(data))
            if not got:
                raise StrangerError("it ended the connection" + ("" if listening else ": has it the same secret?"))
            data += got
        return data

    def proof(role: bytes, first: bytes, second: bytes) -> bytes:
        return hmac.digest(secret, _MAGIC + role + first + second, hashlib.sha256)

    try:
        mine = os.urandom(_NONCE)
        if listening:
            connection.sendall(_MAGIC + mine)
            theirs = take(_NONCE)
            if not hmac.compare_digest(take(_PROOF), proof(b"client", mine, theirs)):
                raise StrangerError("it does not know the secret")
            connection.sendall(proof(b"server", mine, theirs))
        else:
            if take(len(_MAGIC)) != _MAGIC:
                raise StrangerError("it is no host of a tfdp job, or of another version of tfdp")
            theirs = take(_NONCE)
            connection.sendall(mine + proof(b"client", theirs, mine))
            if not hmac.compare_digest(take(_PROOF), proof(b"server", theirs, mine)):
                raise StrangerError("it does not know the secret")
    except OSError as error:
        raise StrangerError(f"it did not say who it is ({error})") from None


class Link:
    """A proven connection. Messages go out in the order in which they are given, without a wait for the other end."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        """`name` is what the other host is called in messages."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(_BEAT_SECONDS)
        self.name = name
        self.left_in_order = False
        self._socket = connection
        self._leaving: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="tfdp-link-out", daemon=True)
        self._silent_seconds = 0.0
        self._serving = False
        self._writer.start()

    @property
    def gone(self) -> bool:
        """Whether the other end has closed the connection, which sends nothing yet; for the time before `serve`."""
        try:
            readable = select.poll()  # which takes any number of file descriptors
            readable.register(self._socket, select.POLLIN)
            return bool(readable.poll(0)) and not self._socket.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):  # it has been closed here
            return True

    def receive(self, limit_seconds: float) -> Message:
        """The next message but heartbeats; for the time before `serve`.

        Raises:
            LinkError: the connection has ended, or nothing has been heard of the other end for so long.
        """
        while True:
            message = self._next(limit_seconds, lambda _: None)
            if message.kind is not Kind.BEAT:
                return message

    def serve(
        self,
        arrived: Callable[["Link", Message], None],
        ended: Callable[["Link", str], None],
        said: Callable[[str], None],
        limit_seconds: float,
    ) -> None:
        """Hand over what arrives, on a thread of its own.

        Args:
            arrived: called with each message.
            ended: called once, with the reason, when the connection is over; not after a goodbye.
            said: called with a line when nothing is heard of the other end for a while, and when it is heard again.
            limit_seconds: how long nothing may be heard before that is the end.
        """

        def read() -> None:
            try:
                while not self.left_in_order:
                    message = self._next(limit_seconds, said)
                    self.left_in_order = message.kind is Kind.GOODBYE
                    if message.kind is not Kind.BEAT:
                        arrived(self, message)
            except LinkError as error:
                ended(self, str(error))

        self._serving = True
        threading.Thread(target=read, name="tfdp-link-in", daemon=True).start()

    def send(self, message: Message) -> None:
        """Send a message after those that were given before."""
        self._leaving.put(message)

    def close(self, seconds: float = 5.0) -> None:
        """End the connection when all has been sent, or after so many seconds."""
        self._leaving.put(None)
        if threading.current_thread() is not self._writer:
            self._writer.join(seconds)
        with contextlib.suppress(OSError):
            self._socket.close()

    def _write(self) -> None:
        while True:
            try:
                message = self._leaving.get(timeout=_BEAT_SECONDS)
            except queue.Empty:
                if not self._serving:
                    continue
                message = Message(Kind.BEAT)
            if message is None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_WR)
                return
            if not self._sent(_HEADER.pack(message.kind, message.rank, len(message.payload)) + message.payload):
                return

    def _sent(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view[:_CHUNK]) :]
            except TimeoutError:
                continue  # whether it is lost, the reading end tells
            except OSError:
                return False
        return True

    def _next(self, limit_seconds: float, said: Callable[[str], None]) -> Message:
        kind, rank, length = _HEADER.unpack(self._exactly(_HEADER.size, limit_seconds, said))
        if length > _MOST_BYTES or kind not in iter(Kind):
            raise LinkError(f"{self.name} has sent what is no message")
        return Message(Kind(kind), rank, self._exactly(length, limit_seconds, said))

    def _exactly(self, count: int, limit_seconds: float, said: Callable[[str], None]) -> bytes:
        data, told = bytearray(), False
        while len(data) < count:
            began = time.monotonic()
            try:
                got = self._socket.recv(min(count - len(data), _CHUNK))
            except TimeoutError:
                # A process that was stopped itself has not been listening all the while.
                self._silent_seconds += min(time.monotonic() - began, 2 * _BEAT_SECONDS)
                silent = self._silent_seconds
                if silent > limit_seconds:
                    raise LinkError(f"nothing has been heard of {self.name} for {silent:.0f} s") from None
                if silent > _SILENT_SECONDS and not told:
                    said(f"nothing is heard of {self.name} for {silent:.0f} s; after {limit_seconds:g} s it is lost")
                    told = True
                continue
            except ConnectionResetError:  # as of a process that was killed with something unread
                raise LinkError(f"{self.name} has ended without a word") from None
            except OSError as error:
                raise LinkError(f"the connection to {self.name} has ended ({error})") from None
            if not got:
                raise LinkError(f"{self.name} has ended without a word")
            if told:
                said(f"{self.name} is heard again")
                told = False
            self._silent_seconds = 0.0
            data += got
        return bytes(data)
