"""One collective of TensorFlow's at a time, which all ranks have agreed on beforehand.

TensorFlow's collectives do not notice that ranks have come to different ones, wait for a missing rank for ever, and
lose a process-wide executor when anything goes wrong. So the ranks meet first, as in the shared-memory transport, and
compare what they call; only then is the collective begun. While it runs, a thread looks whether the job has ended or
the stall limit is over, and breaks it off.
"""

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from ..foundation import REASON_SECONDS, JobAborted, StallError, TfdpError, reason_within, uncaught
from ._arena import FINISHED, Arena
from ._call import Call
from ._meeting import Meeting

_POLL_SECONDS = 0.1
_STAY_SECONDS = 0.005
_WORD = 2**32


class Lane:
    """The way to the collectives as one rank sees it. Calls from several threads take turns."""

    def __init__(
        self,
        arena: Arena,
        rank: int,
        stall_seconds: float,
        break_off: Callable[[str], None],
        spread: Callable[[bytes], None] | None = None,
    ) -> None:
        """`break_off` makes the collective under way, and all later ones, fail with the text it is given.

        `spread` is for a job on several hosts, as in `Meeting`.
        """
        self._arena, self._rank = arena, rank
        self._meeting = Meeting(arena, rank, stall_seconds, spread)
        self._stall_seconds = stall_seconds
        self._break_off = break_off
        self._size = arena.size
        self._entering = threading.Lock()
        self._changed = threading.Condition()
        self._call: Call | None = None
        self._waited = 0.0
        self._ended: TfdpError | None = None
        self._pid = os.getpid()
        threading.Thread(target=self._watch, name="tfdp-lane", daemon=True).start()
        atexit.register(self._at_the_end)

    def enter(self, call: Call, payload: int = 0, rows: int = 0) -> list[tuple[int, int]]:
        """Return when all ranks have come to this call, with the numbers that each of them has given.

        The lane then belongs to this call until `leave`.

        Raises:
            CollectiveMismatchError: another rank has come to another call; raised on every rank.
            RankFinishedError, JobAborted, StallError: a rank is not coming.
        """
        with self._entering:
            self._wait_until_free(call)
            with self._meeting.turn(call):
                self._meeting.publish(payload, rows)
                self._meeting.wait()
                numbers = [self._meeting.numbers(rank) for rank in range(self._size)]
            with self._changed:
                self._call, self._waited = call, 0.0
        return numbers

    def leave(self) -> None:
        """The collective is over on this rank."""
        with self._changed:
            if self._call is not None:
                self._arena.set_over(self._rank, (self._arena.over(self._rank) + 1) % _WORD)
                self._meeting.tell()
            self._call = None
            self._changed.notify_all()

    def is_awaited(self) -> bool:
        """Whether rank 0 has begun a call that this rank has not."""
        return self._meeting.is_awaited(0)

    def ended(self) -> AbstractContextManager[None]:
        """As of `Meeting`."""
        return self._meeting.ended()

    def close(self) -> None:
        """No call will follow: whoever waits for this rank is told so."""
        self._meeting.leave()

    def failed(self, error: BaseException, *, lost: bool) -> TfdpError | None:
        """What is behind the failure of the collective under way, or None if it is this rank's own.

        The latter breaks the job. `lost` says that the error may come from a lost connection.
        """
        call = self._call
        reason = self._reason() if lost else self._arena.aborted()
        if self._ended is not None:
            return self._ended
        if reason is not None and call is not None:
            return JobAborted(self._sentence(call, reason))
        self._arena.abort(self._rank, f"rank {self._rank} left {call} because of {type(error).__name__}: {error}")
        return None

    def _wait_until_free(self, call: Call) -> None:
        waited = 0.0
        with self._changed:
            while self._call is not None:
                reason = self._arena.aborted()
                if reason is not None:
                    raise JobAborted(f"rank {self._rank} cannot begin {call}: {reason}")
                if waited > self._stall_seconds:
                    raise StallError(
                        f"rank {self._rank} has waited {waited:.0f} s to begin {call}: {self._call} has not ended"
                    )
                if not self._changed.wait(_POLL_SECONDS):
                    waited += _POLL_SECONDS

    def _watch(self) -> None:
        while self._ended is None:
            time.sleep(_POLL_SECONDS)
            with self._changed:
                call = self._call
                # A job that was stopped and continued has not been waiting all the while.
                self._waited += _POLL_SECONDS
                waited = self._waited
            if call is None:
                continue
            reason = self._arena.aborted()
            if reason is not None:
                self._end(JobAborted(self._sentence(call, reason)))
            elif waited > self._stall_seconds:
                stalled = (
                    f"rank {self._rank} has been in {call} for {waited:.0f} s since all ranks had come to it: one of "
                    "them, or the way to it, has stopped. If the exchange may take that long, raise "
                    f"TFDP_STALL_SECONDS (now {self._stall_seconds:g})"
                )
                self._arena.abort(self._rank, stalled)
                self._end(StallError(stalled))

    def _end(self, error: TfdpError) -> None:
        self._ended = error
        self._break_off(f"{type(error).__name__}: {error}")

    def _sentence(self, call: Call, reason: str) -> str:
        return f"rank {self._rank} was in {call} when the job ended: {reason}"

    def _reason(self) -> str | None:
        """Why the job ends; where a peer has just gone, the launcher may not have said it yet."""
        return reason_within(self._arena.aborted, REASON_SECONDS)

    def _at_the_end(self) -> None:
        if self._pid != os.getpid():
            return
        if self._call is not None:
            self._last_words(self._call)
        elif self._ended is None:
            self._stay()

    def _stay(self) -> None:
        # TensorFlow's server ends with the process, and others may still take from it what they get of the last call.
        waited = 0.0
        while any(map(self._is_behind, range(self._size))) and waited < self._stall_seconds:
            if self._arena.aborted() is not None:
                return
            time.sleep(_STAY_SECONDS)
            waited += _STAY_SECONDS

    def _is_behind(self, peer: int) -> bool:
        late = (self._arena.over(peer) - self._arena.over(self._rank)) % _WORD >= _WORD // 2
        return late and self._arena.state(peer) != FINISHED

    def _last_words(self, call: Call) -> None:
        # TensorFlow's own error for a lost connection, in a graph, names neither the rank nor the place of the call. It
        # may come before the collective is broken off with one that does.
        if self._ended is None and (reason := self._reason()) is not None:
            self._ended = JobAborted(self._sentence(call, reason))
        if self._ended is not None and str(self._ended) not in str(uncaught()):
            with contextlib.suppress(OSError, ValueError):
                print(f"tfdp: {type(self._ended).__name__}: {self._ended}", file=sys.stderr, flush=True)
