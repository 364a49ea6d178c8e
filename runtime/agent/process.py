"""The process that serves the ranks of a host which an engine has started."""

import contextlib
import json
import os
import queue
import secrets
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from ..clusters import handout
from ..transports import DEFAULT_BYTES, FINISHED, Arena
from .store_server import StoreServer

_STORE_BYTES = 4 * 2**30
# The others are told at once, and end by themselves with words if they can.
_STOP_SECONDS = 2.0
_GRACE_SECONDS = 10.0
_POLL_SECONDS = 0.2
_DESERTED_SECONDS = 60.0


@dataclass
class _Rank:
    """A rank that has come, its process, and whether it is still there."""

    pid: int
    process_fd: int
    here: bool = True


class Agent:
    """Serves `local_size` of the `size` ranks of a job, and sees to their end when one of them fails."""

    def __init__(self, listener: socket.socket, engine: str, size: int, local_size: int) -> None:
        """`listener` is where the ranks come; it is closed when all have come."""
        self._listener, self._engine, self._size, self._local_size = listener, engine, size, local_size
        self._job, self._seed = secrets.token_hex(16), secrets.randbits(32)
        self._memory_fd = Arena.create(size, DEFAULT_BYTES)
        self._arena = Arena(self._memory_fd, size)
        self._events: queue.SimpleQueue[tuple[int, str | None]] = queue.SimpleQueue()
        self._store = StoreServer(size, self._job, _STORE_BYTES, failed=self._told, left=self._left)
        self._ranks: dict[int, _Rank] = {}
        self._asked: dict[str, Any] = {}
        self._failed_at: float | None = None
        self._teller: int | None = None
        self._signals: list[signal.Signals] = []

    def serve(self) -> None:
        """Until the last rank has ended."""
        self._store.start(keep_ends=True)
        threading.Thread(target=self._receive, name="tfdp-agent", daemon=True).start()
        deserted = time.monotonic()
        while True:
            with contextlib.suppress(queue.Empty):
                self._heard(*self._events.get(timeout=_POLL_SECONDS))
            here = {number: rank for number, rank in self._ranks.items() if rank.here}
            if here:
                deserted = time.monotonic()
                self._stop(here)
            elif self._is_over(time.monotonic() - deserted):
                break
        self._store.close()

    def _is_over(self, deserted_seconds: float) -> bool:
        """Whether nobody is to come any more, where nobody is here."""
        every = len(self._ranks) == self._local_size
        return every or self._failed_at is not None or deserted_seconds > _DESERTED_SECONDS

    # --- on other threads ---------------------------------------------------------------------------------------------

    def _told(self, rank: int, reason: str) -> None:
        """A rank says that it has failed; its process may take long to end."""
        self._arena.abort(rank, reason)
        self._events.put((rank, reason))

    def _left(self, rank: int, in_order: bool) -> None:
        """The connection of a rank has ended, after a goodbye or without one."""
        self._events.put((rank, None if in_order else ""))

    def _receive(self) -> None:
        with self._listener:
            while len(self._ranks) < self._local_size:
                there, _ = self._listener.accept()
                with there, contextlib.suppress(OSError):
                    pid, user = handout.other_end(there)
                    if user == os.getuid():
                        there.settimeout(_GRACE_SECONDS)
                        self._serve(there, pid)

    def _serve(self, there: socket.socket, pid: int) -> None:
        try:
            asked = json.loads(there.recv(handout.LARGEST))
            refused = self._refusal(asked, pid)
        except (ValueError, KeyError, TypeError):
            return
        if refused:
            handout.answer(there, {"refused": refused}, None)
            return
        rank = int(asked["rank"])
        end = self._store.ends[rank]
        self._ranks[rank] = _Rank(pid, os.pidfd_open(pid))
        self._asked = self._asked or asked
        given = {"job": self._job, "seed": self._seed, "cross_rank": 0, "cross_size": 1}
        handout.answer(there, given, (end.fileno(), self._memory_fd))
        end.close()  # so that the end of the rank is the end of the connection

    def _refusal(self, asked: dict[str, Any], pid: int) -> str:
        rank, first = asked["rank"], self._asked
        if not isinstance(rank, int) or not 0 <= rank < self._size:
            return f"the job has {self._size} ranks, from 0 on"
        if rank in self._ranks:
            return (
                f"process {self._ranks[rank].pid} is this rank already; process {pid} cannot be it too. One process "
                "of each rank calls dp.init(): the training script itself"
            )
        if first and asked["version"] != first["version"]:
            return f"it has tfdp {asked['version']}, and rank {first['rank']} has {first['version']}: install the same"
        if asked["size"] != self._size:
            return f"it is one of {asked['size']}, and local rank 0 one of {self._size}"
        if first and asked["order"] not in (None, first["order"]) and first["order"] is not None:
            return (
                f"it goes through a set of texts in another order than rank {first['rank']}: start all with the same "
                "PYTHONHASHSEED"
            )
        return ""

    # --- the end ------------------------------------------------------------------------------------------------------

    def _heard(self, number: int, reason: str | None) -> None:
        rank = self._ranks.get(number)
        if reason:
            self._teller = number if self._teller is None else self._teller
            self._fail(reason)
        elif rank is not None:
            rank.here = False
            if reason is None:
                self._arena.set_state(number, FINISHED)
                self._store.finished(number)
            elif self._failed_at is None:
                said = (
                    f"rank {number} (process {rank.pid}) has ended without a word: killed, out of memory, or by "
                    "os._exit"
                )
                _say(f"{said}. The other ranks are stopped")
                self._fail(said)

    def _fail(self, reason: str) -> None:
        if self._failed_at is None:
            self._failed_at = time.monotonic()
            self._arena.abort(self._size, reason)
            self._store.abort(reason)

    def _stop(self, here: dict[int, _Rank]) -> None:
        """Make the ranks end that do not by themselves. One that has told its end is ending, and has its status."""
        if self._failed_at is None:
            return
        waited = time.monotonic() - self._failed_at
        for after, signal_, spared in (
            (_STOP_SECONDS, signal.SIGTERM, self._teller),
            (_GRACE_SECONDS, signal.SIGKILL, None),
        ):
            if waited >= after and signal_ not in self._signals:
                self._signals.append(signal_)
                for number, rank in here.items():
                    with contextlib.suppress(ProcessLookupError):
                        if number != spared:
                            signal.pidfd_send_signal(rank.process_fd, signal_)


def _say(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(f"tfdp: {line}", file=sys.stderr, flush=True)


def main(listener_fd: str, order: str) -> int:
    """What `tfdp.runtime.clusters.handout` starts: the listening socket, and the rest as JSON."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the ranks; it ends with the last of them
    Agent(socket.socket(fileno=int(listener_fd)), **json.loads(order)).serve()
    return 0
