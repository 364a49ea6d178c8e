"""What one host's server and the other hosts' tell each other. The root passes on what is for more than itself.

The store is the root's: other hosts hand their ranks' frames on, and the answers back. Where the ranks meet, in memory,
what one has published is written into the memory of every host.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from ..store import Frame, parsed
from ..transports import FINISHED, Arena, Mirror
from .link import Kind, Link, Message
from .rendezvous import Plan
from .store_server import StoreServer, Ways

DEFAULT_LIMIT_SECONDS = 30.0


class Server(Protocol):
    """Who serves the ranks of this host, and is told what becomes of the others."""

    def told(self, rank: int, reason: str) -> None:
        """A rank of another host, or the whole of that host (-1), has failed: end the job here. On any thread."""

    def said(self, line: str) -> None:
        """A line for the user. On any thread."""


class Hosts:
    """The other hosts of a job, as one of them sees them; none of its methods waits for another host but `close`."""

    def __init__(self, plan: Plan, links: Sequence[Link], server: Server, arena: Arena, limit_seconds: float) -> None:
        """`links` lead from the root to all others, in their order, and from each of them to the root."""
        self._plan, self._links, self._server, self._arena = plan, list(links), server, arena
        self._mirror = Mirror(arena)
        self._limit = limit_seconds
        self._store: StoreServer | None = None
        self._there = {rank: link for link, ranks in zip(links, plan.ranks[1:], strict=True) for rank in ranks}
        self._over = threading.Condition()
        self._ended: set[Link] = set()
        self._closing = False

    @property
    def is_root(self) -> bool:
        """Whether this host has the store."""
        return self._plan.mine == 0

    def serve(self, store: StoreServer) -> None:
        """Begin, when this host's side of the store is there."""
        self._store = store
        for link in self._links:
            link.serve(self._arrived, self._lost, self._server.said, self._limit)

    def ways(self) -> Ways:
        """How this host's server reaches the others."""
        if self.is_root:
            return Ways(to_rank=self._to_rank, met=self._met, finished=self._finished)
        return Ways(to_store=self._to_store, met=self._met, finished=self._finished)

    # --- from this host -----------------------------------------------------------------------------------------------

    def _to_store(self, rank: int, frame: Frame) -> None:
        """Hand a frame of this host's rank to the root's store."""
        self._links[0].send(Message(Kind.STORE, rank, b"".join(frame.buffers())))

    def _to_rank(self, rank: int, frame: Frame) -> None:
        """Hand the store's frame to a rank of another host."""
        self._there[rank].send(Message(Kind.STORE, rank, b"".join(frame.buffers())))

    def _met(self, rank: int, words: bytes) -> None:
        """A rank of this host has published, where the ranks meet."""
        self._send(Message(Kind.MET, rank, words))

    def _finished(self, rank: int) -> None:
        """A rank of this host has ended without an error."""
        self._send(Message(Kind.FINISHED, rank))

    def failed(self, rank: int, reason: str) -> None:
        """The job has failed on this host, by this rank or (-1) by none."""
        self._send(Message(Kind.ABORT, rank, reason.encode()))

    def close(self, wait: Callable[[], bool]) -> None:
        """Say that this host's ranks have ended. The root stays until the others have, or `wait` says no."""
        while self.is_root and len(self._ended) < len(self._links) and wait():
            with self._over:
                self._over.wait(0.2)
        self._closing = True
        self._send(Message(Kind.GOODBYE))  # last: nothing is read of a host that has said it
        for link in self._links:
            link.close()

    # --- from other hosts, on the links' threads ----------------------------------------------------------------------

    def _arrived(self, link: Link, message: Message) -> None:
        kind, rank = message.kind, message.rank
        store = self._store
        assert store is not None
        if kind is Kind.STORE:
            for frame in parsed(bytearray(message.payload)):
                store.arrived(rank, frame)
        elif kind is Kind.MET:
            self._mirror.write(rank, message.payload)
            self._pass_on(link, message)
        elif kind is Kind.FINISHED:
            self._arena.set_state(rank, FINISHED)
            store.finished(rank)
            self._pass_on(link, message)
        elif kind is Kind.ABORT:
            self._pass_on(link, message)
            self._server.told(rank, message.payload.decode("utf-8", "replace"))
        elif kind is Kind.GOODBYE:
            self._end(link)

    def _lost(self, link: Link, reason: str) -> None:
        self._end(link)
        if self._closing:
            return
        if self.is_root:
            ranks = self._plan.ranks[1 + self._links.index(link)]
            reason = f"{reason}, with {'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"
            self._pass_on(link, Message(Kind.ABORT, -1, reason.encode()))
        self._server.told(-1, reason)

    def _end(self, link: Link) -> None:
        with self._over:
            self._ended.add(link)
            self._over.notify_all()

    def _pass_on(self, origin: Link, message: Message) -> None:
        for link in self._links:
            if link is not origin:
                link.send(message)

    def _send(self, message: Message) -> None:
        for link in self._links:
            link.send(message)
