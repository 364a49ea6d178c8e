"""A running job, seen by its launcher: who has ended, who failed first, which signals came, and when to stop all."""

import contextlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from . import children as processes
from .children import Child, Guardian

_PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
)
# How often the launcher looks whether ranks have been stopped: no signal of theirs says so reliably.
_LOOK_SECONDS = 1.0
# How long a rank that a signal has interrupted may take to end once its last exit handler has run.
_HURRY_SECONDS = 1.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Signals:
    """Turns signals into something the main loop can wait for. Used as a context manager in the main thread."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._reader, selectors.EVENT_READ)
        self._before: list[tuple[int, object]] = []

    def __enter__(self) -> "Signals":
        self._wakeup_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (*_PASSED_ON, signal.SIGCHLD):
            handler = signal.getsignal(number)
            # What was ignored stays ignored, here and in the ranks: nohup means it.
            if handler is not signal.SIG_IGN or number == signal.SIGCHLD:
                self._before.append((number, handler))
                signal.signal(number, _noted)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._wakeup_before)
        self._selector.close()
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, seconds: float | None) -> list[int]:
        """The signals that have come, after at most `seconds`; `poke` ends the wait too."""
        self._selector.select(seconds)
        with contextlib.suppress(BlockingIOError):
            return [number for number in os.read(self._reader, 4096) if number]
        return []

    def poke(self) -> None:
        """End a wait, from any thread."""
        with contextlib.suppress(OSError):
            os.write(self._writer, b"\0")


def _noted(_number: int, _frame: FrameType | None) -> None:
    """The wakeup file descriptor carries the number; a handler must exist for that."""


class Watch:
    """Waits for the ranks of a job and ends it when one fails or a signal says so."""

    def __init__(
        self,
        ranks: Sequence[Child],
        guardian: Guardian,
        grace_seconds: float,
        stall_seconds: float,
        *,
        failed: Callable[[str], None],
        finished: Callable[[int], None],
        ending: Callable[[], int | None],
        through: Mapping[int, float],
    ) -> None:
        """`failed` is called with the reason of the first failure, `finished` for each rank that ends without one.

        `ending` gives the rank that has told that it has failed, though its process may still run. `through` holds the
        ranks that end by an exception and have run their last exit handler, and when; `ending` may add to it.
        """
        self._ranks = ranks
        self._guardian = guardian
        self._grace = grace_seconds
        self._stall = stall_seconds
        self._looked_at = time.monotonic()
        self._failed = failed
        self._finished = finished
        self._ending = ending
        self._through = through
        self._hurried: set[int] = set()
        self._asked = 0
        self._term_at: float | None = None
        self._kill_at: float | None = None
        self._times_set = False
        self.first: Child | None = None
        self.stopped: list[Child] = []
        self.stopped_by: int | None = None
        self.killed: list[int] = []
        self.unread = False

    def run(self, signals: Signals) -> None:
        """Return when all ranks have ended."""
        while any(child.status is None for child in self._ranks):
            for number in signals.wait(self._timeout()):
                if number in _PASSED_ON:
                    self._pass_on(number)
            if self.unread and self._asked == 0:
                self._pass_on(signal.SIGTERM)
                self.stopped_by = signal.SIGPIPE
            for child in processes.reap(self._ranks, self._guardian):
                self._ended(child)
            if self._ending() is not None:
                self._set_times()
            self._look()
            self._escalate()

    def unread_by(self, signals: Signals) -> Callable[[], None]:
        """What to call, on any thread, when nobody reads our output any more."""

        def unread() -> None:
            self.unread = True
            signals.poke()

        return unread

    def _timeout(self) -> float | None:
        times = [at for at in (self._term_at, self._kill_at) if at is not None]
        if self.stopped_by is not None:
            times += [at + _HURRY_SECONDS for rank, at in self._through.items() if rank not in self._hurried]
        return max(0.0, min([*times, self._looked_at + _LOOK_SECONDS]) - time.monotonic())

    def _ended(self, child: Child) -> None:
        if child.status == 0:
            self._finished(child.rank)
        elif self.first is None:
            self.first = child = self._before(child)
            how = "an exception" if child.status is None else processes.name_of_status(child.status)
            self._failed(f"rank {child.rank} ended with {how}")
            self.stopped = [each for each in self._ranks if each.status is None and processes.is_stopped(each)]
            self._set_times()

    def _before(self, child: Child) -> Child:
        """The rank that has failed first. One that a signal has ended may have followed others that had come to their
        end by an exception, and that the kernel is still clearing away."""
        assert child.status is not None
        if child.status > 0:
            return child
        self._ending()
        over = [each for each in self._ranks if each.rank in self._through and each.status != 0]
        return min(over, key=lambda each: self._through[each.rank], default=child)

    def _set_times(self) -> None:
        """The others may say in their own words what they were waiting for, and clean up; but not for ever."""
        if not self._times_set:
            self._times_set = True
            self._term_at = time.monotonic() + self._grace / 2
            self._kill_at = self._kill_at or time.monotonic() + self._grace

    def _look(self) -> None:
        """Find the ranks that have been stopped for longer than the stall limit: no peer of theirs need be waiting."""
        passed = time.monotonic() - self._looked_at
        if passed < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        for child in self._ranks:
            # A launcher that was stopped itself has not seen all of that time.
            stopped = child.status is None and processes.is_stopped(child)
            child.stopped_seconds = child.stopped_seconds + min(passed, 2 * _LOOK_SECONDS) if stopped else 0.0
            if child.stopped_seconds > self._stall and self.first is None:
                self.first, self.stopped = child, [child]
                child.over_at = self._looked_at
                self._failed(f"rank {child.rank} has been stopped (SIGSTOP) for {child.stopped_seconds:.0f} s")
                self._set_times()

    def _pass_on(self, number: int) -> None:
        if number == signal.SIGTSTP:
            # The ranks are in process groups of their own, so the terminal has stopped only us.
            self._send(signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
            self._send(signal.SIGCONT)
            return
        if number in ENDING:
            self._asked += 1
            if self._asked > 1:
                self._kill()  # no more patience
                return
            if self.first is None:
                self.stopped_by = number
                if not self.unread:
                    say(self._asks(number))
            self._kill_at = self._kill_at or time.monotonic() + self._grace
        self._send(number)

    def _escalate(self) -> None:
        now = time.monotonic()
        if self._term_at is not None and now >= self._term_at:
            self._term_at = None
            # The one that has failed is ending by itself.
            self._send(signal.SIGTERM, spared=self._ending())
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._kill()
        if self.stopped_by is not None:
            self._hurry(now)

    def _hurry(self, now: float) -> None:
        """Do not wait for what TensorFlow does at the end of a process that a signal has interrupted.

        It may hold one for many seconds where it lets go of a dataset. Of the script nothing runs any more then: its
        threads and what it has left to `atexit` have come to their end.
        """
        for child in self._ranks:
            if child.rank not in self._hurried and now >= self._through.get(child.rank, now) + _HURRY_SECONDS:
                self._hurried.add(child.rank)
                child.signal(signal.SIGTERM)

    def _asks(self, number: int) -> str:
        name = signal.Signals(number).name
        them = f"the {len(self._ranks)} ranks have" if len(self._ranks) > 1 else "the rank has"
        return f"{name}: {them} been told and may take {self._grace:g} s to end; a second signal ends all at once"

    def _kill(self) -> None:
        self.killed = [child.rank for child in self._ranks if child.status is None]
        self._send(signal.SIGKILL)

    def _send(self, number: int, spared: int | None = None) -> None:
        for child in self._ranks:
            if child.rank != spared:
                child.signal(number)


def say(line: str) -> None:
    """One line of the launcher's own, on stderr."""
    with contextlib.suppress(OSError, ValueError):
        print(f"tfdp: {line}", file=sys.stderr, flush=True)
