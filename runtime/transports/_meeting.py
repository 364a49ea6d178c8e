"""Where the ranks of one host meet: each publishes, then waits until all others have, then their calls are compared.

A publication is a header or none, data or none, and then the rank's sequence word, which counts them. Publication n
uses the half of the memory of its parity n % 2. That is safe without further waiting: a rank writes into that half
again for publication n + 2, so after it has seen publication n + 1 of everyone, and nobody makes that before it has
read all it needs of n.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..foundation import CollectiveMismatchError, JobAborted, RankFinishedError, StallError
from . import _call
from ._arena import ENDING, FINISHED, LEFT, RUNNING, Arena, make_fence
from ._call import Call
from ._futex import Futex, worth_spinning
from ._mirror import words_of

# A waiting rank looks at the abort word this often. A wake on the awaited word ends the sleep at once.
_POLL_SECONDS = 0.1
# Waking a sleeper takes 50 microseconds and, in a virtual machine, up to ten times that: more than most waits here.
_SPIN_SECONDS = 0.0003
_WORD = 2**32
_WHY = {
    ENDING: "has come to the end of the script",
    FINISHED: "has ended without an error",
    LEFT: "has called dp.shutdown()",
}


class Meeting:
    """The meeting place as one rank sees it. Calls from several threads take turns."""

    def __init__(
        self, arena: Arena, rank: int, stall_seconds: float, spread: Callable[[bytes], None] | None = None
    ) -> None:
        """`spread` tells other hosts, where there are any, what this rank has written about itself."""
        self._arena = arena
        self._spread = spread
        self._rank = rank
        self._stall_seconds = stall_seconds
        self._peers = tuple(peer for peer in range(arena.size) if peer != rank)
        self._sequence = arena.sequence(rank)
        self._futex = Futex()
        self._fence = make_fence()
        self._spin_seconds = _SPIN_SECONDS if worth_spinning(arena.size) else 0.0
        self._lock = threading.Lock()
        self._encoded: dict[Call, bytes] = {}
        self._call: Call | None = None
        self._announced = False
        self._broken: str | None = None

    @property
    def parity(self) -> int:
        """Which half the last publication used."""
        return self._sequence % 2

    @property
    def next_parity(self) -> int:
        """Which half the next publication uses."""
        return (self._sequence + 1) % 2

    @contextmanager
    def turn(self, call: Call) -> Iterator[None]:
        """One collective from the first publication to the last.

        A rank that leaves it early by an error breaks the job, because the others are in the middle of it too. Not so
        a mismatch, which all ranks meet at the same point.

        Raises:
            JobAborted: the job is ending, or an earlier collective was left in the middle.
        """
        with self._lock:
            self._refuse_if_over(call)
            self._call, self._announced = call, False
            try:
                yield
            except CollectiveMismatchError:
                raise
            except BaseException as error:
                self._broken = f"rank {self._rank} left {call} because of {type(error).__name__}: {error}"
                self._arena.abort(self._rank, self._broken)
                raise

    def publish(self, payload: int = 0, rows: int = 0) -> None:
        """Let the others see what has been written. The numbers are for the first publication of a collective."""
        sequence = (self._sequence + 1) % _WORD
        if not self._announced:
            header = self._arena.header(self._rank, sequence % 2)
            _call.announce(header, self._encode(), sequence, payload, rows)
        self._fence()
        self._sequence = sequence
        self._arena.set_sequence(self._rank, sequence)
        self._fence()
        self._futex.wake(self._arena.sequence_address(self._rank))
        self.tell(header=not self._announced)

    def tell(self, *, header: bool = False) -> None:
        """Let other hosts know what this rank has written about itself."""
        if self._spread is not None:
            self._spread(words_of(self._arena, self._rank, header=header))

    def wait(self) -> None:
        """Return when all ranks have made as many publications as this one.

        Raises:
            CollectiveMismatchError: another rank announced another call; raised on every rank.
            RankFinishedError: a rank that is needed has ended.
            JobAborted: a rank has failed.
            StallError: the stall limit is over.
        """
        for peer in self._peers:
            if self._behind(peer):
                self._wait_for(peer)
        self._fence()
        if not self._announced:
            self._announced = True
            self._compare()

    def is_awaited(self, peer: int) -> bool:
        """Whether a peer has made a publication that this rank has yet to make."""
        return 0 < (self._arena.sequence(peer) - self._sequence) % _WORD < _WORD // 2

    @contextmanager
    def ended(self) -> Iterator[None]:
        """No call will follow before the others have come to their end, too: whoever waits for this rank is told so."""
        self._arena.set_state(self._rank, ENDING)
        self.tell()
        try:
            yield
        finally:
            self._arena.set_state(self._rank, RUNNING)
            self.tell()

    def leave(self) -> None:
        """No call will follow: whoever waits for this rank is told so."""
        with self._lock:
            self._arena.set_state(self._rank, LEFT)
            self.tell()

    def numbers(self, rank: int) -> tuple[int, int]:
        """The numbers that `rank` gave to the publication just waited for, the first one of the collective."""
        return _call.numbers(self._arena.header(rank, self.parity))

    def _refuse_if_over(self, call: Call) -> None:
        reason = self._arena.aborted() or self._broken
        if reason is not None:
            raise JobAborted(f"rank {self._rank} cannot begin {call}: {reason}")

    def _encode(self) -> bytes:
        assert self._call is not None
        if self._call not in self._encoded:
            if len(self._encoded) >= 1024:  # shapes that change at every step must not fill the memory
                self._encoded.clear()
            self._encoded[self._call] = self._call.encode()
        return self._encoded[self._call]

    def _compare(self) -> None:
        headers = {rank: self._arena.header(rank, self.parity) for rank in range(self._arena.size)}
        encoded = self._encode()
        if not all(_call.same(header, encoded) for header in headers.values()):
            raise CollectiveMismatchError(_call.mismatch(headers))

    def _behind(self, peer: int) -> bool:
        # The difference and not the order: the words wrap around, and a peer is at most one publication ahead.
        return (self._arena.sequence(peer) - self._sequence) % _WORD >= _WORD // 2

    def _wait_for(self, peer: int) -> None:
        began = time.monotonic()
        while time.monotonic() - began < self._spin_seconds:
            if not self._behind(peer):
                return
            self._futex.give_way()
        address = self._arena.sequence_address(peer)
        waited = 0.0
        while True:
            seen = self._arena.sequence(peer)
            if (seen - self._sequence) % _WORD < _WORD // 2:
                return
            self._check(peer, waited)
            began = time.monotonic()
            self._futex.wait(address, seen, _POLL_SECONDS)
            # A job that was stopped and continued has not been waiting all the while.
            waited += min(time.monotonic() - began, 2 * _POLL_SECONDS)

    def _check(self, peer: int, waited: float) -> None:
        # The state first and the word again after it: a rank may publish for the last time and then end.
        state = self._arena.state(peer)
        if state != RUNNING and self._behind(peer):
            raise RankFinishedError(
                f"rank {self._rank} waits in {self._call} for rank {peer}, which {_WHY[state]} and will "
                "not come. Every rank must make the same number of collective calls: look for unequal numbers of "
                "steps, or for an exit or return that only some ranks take"
            )
        reason = self._arena.aborted()
        if reason is not None and self._behind(peer):
            raise JobAborted(f"rank {self._rank} was in {self._call} when the job ended: {reason}")
        if waited > self._stall_seconds:
            raise StallError(self._stalled(waited))

    def _stalled(self, waited: float) -> str:
        missing = [peer for peer in self._peers if self._behind(peer)]
        said = []
        for peer in missing:
            try:
                call = _call.last([self._arena.header(peer, 0), self._arena.header(peer, 1)])
            except ValueError:  # it is being written just now
                call = "is coming just now"
            said.append(
                f"rank {peer}, whose last call was {call}" if call else f"rank {peer}, which has called nothing"
            )
        return (
            f"rank {self._rank} has waited {waited:.0f} s in {self._call} for {'; '.join(said)}. If ranks may be that "
            f"far apart, raise TFDP_STALL_SECONDS (now {self._stall_seconds:g})"
        )
