"""The process that serves the ranks of a host which an engine has started."""

import contextlib
import json
import math
import os
import queue
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..clusters import handout
from ..foundation import TransportError
from ..transports import DEFAULT_BYTES, FINISHED, Arena
from .engine_hosts import meet_hosts
from .hosts import DEFAULT_LIMIT_SECONDS, Hosts
from .link import Link
from .rendezvous import Plan, alone
from .store_server import StoreServer

_STORE_BYTES = 4 * 2**30
# The others are told at once, and end by themselves with words if they can.
_STOP_SECONDS = 2.0
_GRACE_SECONDS = 10.0
_POLL_SECONDS = 0.2
_DESERTED_SECONDS = 60.0
_LATE_SECONDS = 30.0
_ELSEWHERE = "\0"  # behind the reason of another host


@dataclass
class _Rank:
    """A rank that has come, its process, and whether it is still there; and where it waits, until it is answered."""

    pid: int
    process_fd: int
    waits: socket.socket | None
    here: bool = True


class Agent:
    """Serves `local_size` of the `size` ranks of a job, and sees to their end when one of them fails.

    On one host each rank is answered when it comes. On several the agents meet first, when all of this host have come.
    """

    def __init__(self, listener: socket.socket, engine: str, size: int, local_size: int, root: str) -> None:
        """`listener` is where the ranks come; it is closed when all have come. `root`: the host of rank 0, or empty."""
        self._listener, self._engine, self._root = listener, engine, root
        self._size, self._local_size = size, local_size
        memory_bytes = int(_number("TFDP_SHM_BYTES", DEFAULT_BYTES))
        self._memory_fd = Arena.create(size, memory_bytes, local_size if local_size < size else None)
        self._arena = Arena(self._memory_fd, size)
        self._events: queue.SimpleQueue[tuple[int, str | None]] = queue.SimpleQueue()
        self._plan: Plan | None = None
        self._store: StoreServer | None = None
        self._hosts: Hosts | None = None
        self._ranks: dict[int, _Rank] = {}
        self._asked: dict[str, Any] = {}
        self._failed_at: float | None = None
        self._teller: int | None = None
        self._late_at: float | None = None
        self._signals: list[signal.Signals] = []
        if local_size == size:
            self._begin(alone(size), [])

    def serve(self) -> None:
        """Until the last rank has ended."""
        threading.Thread(target=self._receive, name="tfdp-agent", daemon=True).start()
        deserted = time.monotonic()
        while True:
            with contextlib.suppress(queue.Empty):
                self._heard(*self._events.get(timeout=_POLL_SECONDS))
            self._look()
            self._say_who_is_late()
            here = {number: rank for number, rank in list(self._ranks.items()) if rank.here}
            if here:
                deserted = time.monotonic()
                self._stop(here)
            elif self._is_over(time.monotonic() - deserted):
                break
        if self._hosts is not None:
            self._hosts.close(lambda: self._failed_at is None)
        if self._store is not None:
            self._store.close()

    def _begin(self, plan: Plan, links: Sequence[Link]) -> None:
        """The job is known: make what serves this host's ranks."""
        if links:
            self._hosts = Hosts(plan, links, self, self._arena, _number("TFDP_LINK_SECONDS", DEFAULT_LIMIT_SECONDS))
        ways = self._hosts.ways() if self._hosts is not None else None
        here = plan.ranks[plan.mine]
        limit = int(_number("TFDP_STORE_BYTES", _STORE_BYTES))
        self._store = StoreServer(
            self._size, plan.job, limit, failed=self._told, left=self._left, ranks=here, ways=ways
        )
        self._plan = plan
        self._store.start(keep_ends=True)
        if self._hosts is not None:
            self._hosts.serve(self._store)

    def _is_over(self, deserted_seconds: float) -> bool:
        """Whether nobody is to come any more, where nobody is here."""
        every = len(self._ranks) == self._local_size
        return every or self._failed_at is not None or deserted_seconds > _DESERTED_SECONDS

    # --- on other threads ---------------------------------------------------------------------------------------------

    def told(self, rank: int, reason: str) -> None:
        """Another host says that the job has failed there."""
        self._events.put((rank, f"{reason}{_ELSEWHERE}"))

    def said(self, line: str) -> None:
        """Something for the user."""
        _say(line)

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
                with contextlib.suppress(OSError):
                    pid, user = handout.other_end(there)
                    if user != os.getuid() or not self._admitted(there, pid):
                        there.close()
        if self._plan is None:
            self._meet()

    def _admitted(self, there: socket.socket, pid: int) -> bool:
        there.settimeout(_GRACE_SECONDS)
        try:
            asked = json.loads(there.recv(handout.LARGEST))
            refused = self._refusal(asked, pid)
        except (ValueError, KeyError, TypeError):
            return False
        if refused:
            handout.answer(there, {"refused": refused}, None)
            return False
        self._asked = self._asked or asked
        self._ranks[int(asked["rank"])] = _Rank(pid, os.pidfd_open(pid), there)
        if self._plan is not None:
            self._answer(int(asked["rank"]), self._plan)
        return True

    def _meet(self) -> None:
        """All ranks of this host have come: meet the other hosts, and answer."""
        try:
            plan, links = meet_hosts(
                self._engine, self._size, sorted(self._ranks), self._root, self._asked["order"], said=_say
            )
            self._begin(plan, links)
        except TransportError as error:
            for rank in self._ranks.values():
                assert rank.waits is not None
                with contextlib.suppress(OSError):
                    handout.answer(rank.waits, {"refused": str(error)}, None)
                rank.waits.close()
                rank.here = False
            return
        for number in self._ranks:
            self._answer(number, plan)

    def _answer(self, number: int, plan: Plan) -> None:
        rank, topology = self._ranks[number], plan.topology(number)
        assert rank.waits is not None
        assert self._store is not None
        end = self._store.ends[number]
        given = {
            "job": plan.job,
            "seed": plan.seed,
            "cross_rank": topology.cross_rank,
            "cross_size": topology.cross_size,
            "address": plan.addresses[plan.mine],
        }
        with contextlib.suppress(OSError):
            handout.answer(rank.waits, given, (end.fileno(), self._memory_fd))
        rank.waits.close()
        rank.waits = None
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
        if first and asked["order"] != first["order"]:
            return (
                f"it goes through a set of texts in another order than rank {first['rank']}: start all with the same "
                "PYTHONHASHSEED"
            )
        return ""

    # --- the end ------------------------------------------------------------------------------------------------------

    def _say_who_is_late(self) -> None:
        """Once: a rank that ends before it joins is one that the others wait for."""
        came = len(self._ranks)
        if self._late_at is None and came:
            self._late_at = time.monotonic() + _LATE_SECONDS
        if self._late_at is not None and time.monotonic() > self._late_at and came < self._local_size:
            self._late_at = math.inf
            _say(
                f"{self._local_size - came} of this host's {self._local_size} ranks has not called dp.init() "
                f"{_LATE_SECONDS:g} s after the first: only {', '.join(map(str, sorted(self._ranks)))} of them"
            )

    def _look(self) -> None:
        """A rank that waits for an answer has no connection yet of which the end could be seen."""
        waiting = {rank.process_fd: number for number, rank in list(self._ranks.items()) if rank.here and rank.waits}
        for process_fd in select.select(list(waiting), [], [], 0)[0]:
            self._heard(waiting[process_fd], "")

    def _heard(self, number: int, reason: str | None) -> None:
        rank = self._ranks.get(number)
        if reason and reason.endswith(_ELSEWHERE):
            if self._failed_at is None:
                _say(f"the job was ended by another host: {reason.removesuffix(_ELSEWHERE)}")
            self._fail(number, reason.removesuffix(_ELSEWHERE), tell=False)
        elif reason:
            self._teller = number if self._teller is None else self._teller
            self._fail(number, reason)
        elif rank is not None and rank.here:
            rank.here = False
            if reason is None:
                self._arena.set_state(number, FINISHED)
                if self._store is not None:
                    self._store.finished(number)
            elif self._failed_at is None:
                said = (
                    f"rank {number} (process {rank.pid}) has ended without a word: killed, out of memory, or by "
                    "os._exit"
                )
                _say(f"{said}. The other ranks are stopped")
                self._fail(number, said)

    def _fail(self, number: int, reason: str, *, tell: bool = True) -> None:
        if self._failed_at is None:
            self._failed_at = time.monotonic()
            self._arena.abort(self._size, reason)
            if self._store is not None:
                self._store.abort(reason)
            if self._hosts is not None and tell:
                self._hosts.failed(number, reason)

    def _stop(self, here: dict[int, _Rank]) -> None:
        """Make the ranks end that do not by themselves. One that has told its end is ending, and has its status."""
        if self._failed_at is None:
            return
        waited = time.monotonic() - self._failed_at
        for after, signal_, spared in (
            (_STOP_SECONDS, signal.SIGTERM, self._teller),
            (_number("TFDP_GRACE_SECONDS", _GRACE_SECONDS), signal.SIGKILL, None),
        ):
            if waited >= after and signal_ not in self._signals:
                self._signals.append(signal_)
                for number, rank in here.items():
                    with contextlib.suppress(ProcessLookupError):
                        if number != spared:
                            signal.pidfd_send_signal(rank.process_fd, signal_)


def _number(name: str, default: float) -> float:
    try:
        found = float(os.environ.get(name) or default)
    except ValueError:
        found = -1.0
    if not found > 0:
        _say(f"{name} is {os.environ[name]!r}, and a number greater than 0 is needed: {default:g} is taken")
        return default
    return found


def _say(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(f"tfdp: {line}", file=sys.stderr, flush=True)


def main(listener_fd: str, order: str) -> int:
    """What `tfdp.runtime.clusters.handout` starts: the listening socket, and the rest as JSON."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the ranks; it ends with the last of them
    Agent(socket.socket(fileno=int(listener_fd)), **json.loads(order)).serve()
    return 0
