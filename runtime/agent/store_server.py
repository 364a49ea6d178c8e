"""The other side of `tfdp.runtime.store`, in the launcher or the agent: one thread with the values for the ranks."""

import collections
import os
import selectors
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .. import store
from ..store import Frame, packed, parsed
from .shelf import Shelf

_READ_BYTES = 2**18
_OF_THE_STORE = (store.PUBLISH, store.FETCH, store.GATHER, store.CANCEL)


@dataclass(frozen=True)
class Ways:
    """How a host's server reaches what is on other hosts; nothing is set where there are none.

    to_store: hands a frame of a rank of this host to the store, where another host has it.
    to_rank: hands the store's answer to a rank of another host, where this host has the store.
    met: hands on what a rank of this host has published where the ranks meet.
    finished: says that a rank of this host has ended without an error, when all that it has published is handed on.
    """

    to_store: Callable[[int, Frame], None] | None = None
    to_rank: Callable[[int, Frame], None] | None = None
    met: Callable[[int, bytes], None] | None = None
    finished: Callable[[int], None] | None = None


@dataclass(eq=False)
class _Connection:
    """One rank's end: what has arrived of a frame, what is still to be sent, and the fetches that wait.

    `socket` is None for a rank of another host.
    """

    rank: int
    socket: socket.socket | None
    arrived: bytearray = field(default_factory=bytearray)
    leaving: collections.deque[memoryview] = field(default_factory=collections.deque)
    waiting: dict[int, Frame] = field(default_factory=dict)
    greeted: str = ""
    goodbye: bool = False


class StoreServer:
    """Serves one socketpair per rank. Nobody without one of them can reach it."""

    def __init__(
        self,
        size: int,
        job: str,
        limit_bytes: int,
        *,
        failed: Callable[[int, str], None] | None = None,
        spoken: Callable[[int, bytes], None] | None = None,
        echoes: Callable[[int], None] | None = None,
        left: Callable[[int, bool], None] | None = None,
        ranks: Sequence[int] | None = None,
        ways: Ways | None = None,
    ) -> None:
        """What is called on the server's thread.

        failed: with the rank that says first that it has failed, and why.
        spoken: with a rank that is about to end by an exception, and the end of the traceback that it writes.
        echoes: with a rank that writes what rank 0 writes, too.
        left: with a rank whose connection has ended, and whether it has said goodbye before.

        `ranks` are those of this host, all by default; `ways` lead to the others.
        """
        self._failed = failed
        self._spoken = spoken
        self._echoes = echoes
        self._left = left
        self._ways = ways or Ways()
        self._job = job
        self._shelf = Shelf(size, limit_bytes)
        self._finished: set[int] = set()
        self._aborted: bytes | None = None
        self._running = True
        self._closed = False
        self._waking = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="tfdp-store-server", daemon=True)
        self._commands: collections.deque[Callable[[], None]] = collections.deque()
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        self._selector.register(self._wake_in, selectors.EVENT_READ, None)
        self._connections: dict[int, _Connection] = {}
        self._gathers: dict[str, dict[int, Frame]] = {}
        # By key, so that a value that arrives is held against those who want it and no others.
        self._waiting: dict[str, dict[tuple[int, int], _Connection]] = collections.defaultdict(dict)
        self.ends: dict[int, socket.socket] = {}
        here = range(size) if ranks is None else ranks
        for rank in sorted({*range(size)} - {*here}):
            self._connections[rank] = _Connection(rank, None)
        for rank in here:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            self._connections[rank] = _Connection(rank, ours)
            self._selector.register(ours, selectors.EVENT_READ, self._connections[rank])
            self.ends[rank] = theirs

    def start(self, *, keep_ends: bool = False) -> None:
        """Begin to serve; the ranks have been given their `ends`, or will be where these are kept."""
        for end in self.ends.values() if not keep_ends else ():
            end.close()
        self._thread.start()

    def finished(self, rank: int) -> None:
        """The rank has ended without an error: whoever waits for it alone must be told."""
        self._command(lambda: self._finish(rank))

    def abort(self, reason: str) -> None:
        """A rank has failed: nobody waits any longer."""
        self._command(lambda: self._abort(reason.encode()))

    def arrived(self, rank: int, frame: Frame) -> None:
        """A frame of another host: of its rank for the store, or of the store for a rank of this host."""
        connection = self._connections.get(rank)
        if connection is not None:
            take = self._handle if connection.socket is None else self._send
            self._command(lambda: take(connection, frame))

    def _command(self, command: Callable[[], None]) -> None:
        with self._waking:
            if not self._closed:
                self._commands.append(command)
                os.write(self._wake_out, b"!")

    def close(self) -> None:
        """End the thread, if it has been started, and the connections."""
        self._command(self._stop)
        if self._thread.ident is None:
            self._run()
        else:
            self._thread.join()

    def _stop(self) -> None:
        self._running = False
        for rank in list(self._connections):
            self._read_all(rank)

    def _run(self) -> None:
        while self._running:
            for key, events in self._selector.select():
                connection: _Connection | None = key.data
                if connection is None:
                    os.read(self._wake_in, 4096)
                    while self._commands:
                        self._commands.popleft()()
                    continue
                if events & selectors.EVENT_READ:
                    self._read(connection)
                if events & selectors.EVENT_WRITE:
                    self._flush(connection)
        for connection in list(self._connections.values()):
            self._drop(connection)
        for end in self.ends.values():
            end.close()
        self._selector.close()
        with self._waking:
            self._closed = True
            os.close(self._wake_in)
            os.close(self._wake_out)

    def _read(self, connection: _Connection) -> bool:
        """Whether anything had arrived."""
        if connection.socket is None:
            return False
        try:
            data = connection.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return False
        connection.arrived += data
        for message in parsed(connection.arrived):
            self._handle(connection, message)
        return True

    def _handle(self, connection: _Connection, message: Frame) -> None:
        if message.kind in _OF_THE_STORE:
            serve = self._ways.to_store
            if serve is None:
                self._serve(connection, message)
            else:
                serve(connection.rank, message)
        elif message.kind == store.HELLO:
            self._greet(connection, message)
        else:
            self._hear(connection, message)

    def _hear(self, connection: _Connection, message: Frame) -> None:
        """What a rank says of itself."""
        if message.kind == store.MET:
            if self._ways.met is not None:
                self._ways.met(connection.rank, message.value)
        elif message.kind == store.ABORT:
            if self._aborted is None and self._failed is not None:
                self._failed(connection.rank, message.value.decode("utf-8", "replace"))
            self._abort(message.value)
        elif message.kind == store.LAST_WORDS:
            if self._spoken is not None:
                self._spoken(connection.rank, message.value)
        elif message.kind == store.ECHOES:
            if self._echoes is not None:
                self._echoes(connection.rank)
        elif message.kind == store.GOODBYE:
            connection.goodbye = True

    def _serve(self, connection: _Connection, message: Frame) -> None:
        if message.kind == store.PUBLISH:
            readers = None if message.number < 0 else message.number
            self._shelf.put(message.key, message.value, connection.rank, readers)
            self._answer_all(message.key)
        elif message.kind == store.FETCH:
            self._ask(connection, message)
        elif message.kind == store.GATHER:
            self._gather(connection, message)
        else:
            self._forget(connection, message.request)
            for said in self._gathers.values():
                if connection.rank in said and said[connection.rank].request == message.request:
                    del said[connection.rank]
            self._gathers = {key: said for key, said in self._gathers.items() if said}

    def _greet(self, connection: _Connection, message: Frame) -> None:
        pid = message.value.decode()
        if message.key != self._job:
            said = "the launcher at the other end runs another job: start the script with `tfdp run`"
            self._send(connection, Frame(store.REFUSED, value=said.encode()))
        elif connection.greeted:
            said = (
                f"process {connection.greeted} is rank {connection.rank} already; process {pid} cannot be it too. One "
                "process of each rank calls dp.init(): the training script itself"
            )
            self._send(connection, Frame(store.REFUSED, value=said.encode()))
        else:
            connection.greeted = pid
            self._send(connection, Frame(store.WELCOME))
            if self._aborted is not None:
                self._send(connection, Frame(store.ABORT, value=self._aborted))

    def _ask(self, connection: _Connection, wanted: Frame) -> None:
        answer = self._answer(connection.rank, wanted)
        if answer is not None:
            self._send(connection, answer)
        else:
            connection.waiting[wanted.request] = wanted
            self._waiting[wanted.key][connection.rank, wanted.request] = connection

    def _gather(self, connection: _Connection, message: Frame) -> None:
        """Keep what a rank says until all have said something, or one is not going to."""
        said = self._gathers.setdefault(message.key, {})
        said[connection.rank] = message
        if message.key == store.LAST:  # the rank publishes nothing any more
            for key in list(self._waiting):
                self._answer_all(key)
        size = self._shelf.size
        gone = self._finished - said.keys()
        if len(said) < size and not gone and self._aborted is None:
            return
        del self._gathers[message.key]
        answer = Frame(
            store.FINISHED, value=f"rank {min(gone)} has ended without having said it".encode() if gone else b""
        )
        if len(said) == size:
            answer = Frame(store.VALUE, value=packed([said[rank].value for rank in range(size)]))
        elif self._aborted is not None:
            answer = Frame(store.ABORT, value=self._aborted)
        for rank, asked in said.items():
            if rank in self._connections:
                self._send(self._connections[rank], answer._replace(request=asked.request))

    def _forget(self, connection: _Connection, request: int) -> None:
        wanted = connection.waiting.pop(request, None)
        if wanted is not None:
            waiting = self._waiting[wanted.key]
            waiting.pop((connection.rank, request), None)
            if not waiting:
                del self._waiting[wanted.key]

    def _answer_all(self, key: str) -> None:
        """Whoever waits for this key, once there may be something to say."""
        for (rank, request), connection in list(self._waiting.get(key, {}).items()):
            answer = self._answer(rank, connection.waiting[request])
            if answer is not None:
                self._forget(connection, request)
                self._send(connection, answer)

    def _answer(self, rank: int, wanted: Frame) -> Frame | None:
        if self._aborted is not None:
            return Frame(store.ABORT, wanted.request, value=self._aborted)
        value = self._shelf.take(wanted.key, rank)
        if value is not None:
            return Frame(store.VALUE, wanted.request, value=value)
        gone = self._shelf.why_gone(wanted.key)
        if gone is not None:
            return Frame(store.GONE, wanted.request, value=gone.encode())
        said = None
        ended = self._finished | self._gathers.get(store.LAST, {}).keys()
        if wanted.number in ended:
            said = f"rank {wanted.number} has ended without having published it"
        elif len(ended - {rank}) == self._shelf.size - 1:
            said = "all other ranks have ended without having published it"
        return Frame(store.FINISHED, wanted.request, value=said.encode()) if said else None

    def _finish(self, rank: int) -> None:
        # What it published just before it ended may still be on its way.
        self._read_all(rank)
        self._finished.add(rank)
        if self._ways.finished is not None and rank in self.ends:
            self._ways.finished(rank)
        for key in list(self._waiting):
            self._answer_all(key)
        for said in list(self._gathers.values()):
            first = next(iter(said))  # which brings out that a rank is missing for good
            if first in self._connections:
                self._gather(self._connections[first], said[first])

    def _read_all(self, rank: int) -> None:
        while rank in self._connections and self._read(self._connections[rank]):
            pass

    def _abort(self, reason: bytes) -> None:
        if self._aborted is None:
            self._aborted = reason
            self._waiting.clear()
            for connection in list(self._connections.values()):
                connection.waiting.clear()
                if connection.socket is not None:  # other hosts tell their own
                    self._send(connection, Frame(store.ABORT, value=reason))

    def _send(self, connection: _Connection, message: Frame) -> None:
        if connection.socket is None:
            if self._ways.to_rank is not None:
                self._ways.to_rank(connection.rank, message)
            return
        connection.leaving.extend(memoryview(part) for part in message.buffers() if part)
        self._flush(connection)

    def _flush(self, connection: _Connection) -> None:
        assert connection.socket is not None
        leaving = connection.leaving
        try:
            while leaving:
                sent = connection.socket.send(leaving[0])
                leaving[0] = leaving[0][sent:]
                if not leaving[0]:
                    leaving.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if leaving else 0)
        self._selector.modify(connection.socket, events, connection)

    def _drop(self, connection: _Connection) -> None:
        if self._connections.pop(connection.rank, None) is not None and connection.socket is not None:
            for request in list(connection.waiting):
                self._forget(connection, request)
            self._selector.unregister(connection.socket)
            connection.socket.close()
            if self._left is not None and self._running:
                self._left(connection.rank, connection.goodbye)
