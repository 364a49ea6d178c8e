"""The last lines on the screen: the traceback of the rank that failed first, then the cause in a sentence."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import children, tracebacks
from .children import Child
from .output import Output
from .tracebacks import Ending

_TAIL_LINES = 5
# What a rank raises because of another one, and what several raise together: one of them tells it all.
_SHARED = ("JobAborted", "RankFinishedError", "StallError", "CollectiveMismatchError")
_INTERRUPTED = ("KeyboardInterrupt", *_SHARED)
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
# What a process ends with by an exception or a crash. The launcher stops the others with different signals.
_BY_AN_EXCEPTION = (1, *(-number for number in (*_CRASHES, signal.SIGABRT, signal.SIGINT)))


@dataclass(frozen=True)
class Failure:
    """Who failed first, and what is known of it.

    status: what the rank ended with, or would have. stopped: the ranks that stood still at that time.
    told: kind, message and place of the exception in one line, if the rank has told them; else "".
    seconds: from the start of the job to its end. hint: what to make of SIGKILL.
    """

    cause: Child
    status: int
    stopped: Sequence[Child]
    told: str
    seconds: float
    hint: str


class Report:
    """Writes what has been held back of the ranks' stderr, and says how the job has ended."""

    def __init__(self, output: Output, ranks: Sequence[Child], spoken: Mapping[int, bytes]) -> None:
        """`spoken` holds the exceptions that ranks have told: kind and message, as they end a traceback."""
        self._output = output
        self._failed = {child.rank for child in ranks if child.status}
        self._held = {child.rank: output.held(child.rank) for child in ranks}
        self._told = {rank: said.split(b"\n")[:-1] for rank, said in spoken.items()}
        self._by_itself = {child.rank for child in ranks if child.status in _BY_AN_EXCEPTION}
        self._endings = {rank: self._ending(rank, lines) for rank, lines in self._held.items()}

    def all_is_well(self) -> None:
        """Show what was held as it is: no rank has ended with it."""
        for rank, lines in self._held.items():
            self._output.pass_on(rank, lines)

    def interrupted(self) -> None:
        """A signal has ended the job: where each rank was at that time is no news, but what failed after it is."""
        for rank, ending in self._endings.items():
            untold = tracebacks.names(tracebacks.last(ending.traceback), _INTERRUPTED)
            self._show(rank, _INTERRUPTED, untold=untold)

    def failed(self, failure: Failure) -> list[str]:
        """Show what was held, the cause's last, and give the sentences that follow."""
        cause = failure.cause.rank
        own = self._endings[cause].traceback
        alike = [rank for rank, each in self._endings.items() if rank != cause and own and each.traceback == own]
        for rank in self._endings:
            if rank != cause:
                untold = rank in alike or tracebacks.names(self._endings[rank].traceback, _SHARED)
                self._show(rank, _SHARED, untold=untold)
        repeated = self._repeated(failure)
        self._show(cause)
        if not own:  # it was shown as it came: all of it, or because the rank took its time to end
            own = self._ending(cause, self._output.tail(cause)).traceback
        if not own and failure.status == 1 and not failure.told:  # as of sys.exit("message")
            last = next((line for line in reversed(self._output.tail(cause)) if line.strip()), b"")
            return [*_who(failure, alike), *_last_line(last)]
        return [*repeated, *_who(failure, alike), *_why(failure, own)]

    def _ending(self, rank: int, lines: Sequence[bytes]) -> Ending:
        """What a rank has ended by: told by itself, or so that its status agrees. All else is for the user to read."""
        told = self._told.get(rank, [])
        return tracebacks.ending(lines, told) if told or rank in self._by_itself else Ending(list(lines), [], [])

    def _show(self, rank: int, logged: Sequence[str] = (), *, untold: bool = False) -> None:
        """Show what was held of a rank, without what C++ code has logged of the exceptions `logged`.

        untold: without its traceback.
        """
        ending = self._endings[rank]
        if rank not in self._failed:
            self._output.pass_on(rank, self._held[rank])
            return
        before, after = ending.before, ending.after
        if logged:
            before, after = (tracebacks.without_logged(part, logged) for part in (before, after))
        self._output.pass_on(rank, before)
        self._output.show(rank, [] if untold else tracebacks.folded(ending.traceback))
        self._output.pass_on(rank, after)

    def _repeated(self, failure: Failure) -> list[str]:
        """The last lines of the cause's stderr, where they are not the last ones on the screen."""
        rank = failure.cause.rank
        shown = self._endings[rank].traceback or self._output.ends_with(rank)
        if shown or failure.told or failure.status == -signal.SIGKILL:
            return []
        tail = self._output.tail(rank)
        if self._ending(rank, tail).traceback:
            return []
        lines = [f"    {line.decode('utf-8', 'replace')}" for line in tail[-_TAIL_LINES:]]
        return [f"the last lines of rank {rank}'s stderr were:", *lines] if lines else []


def _who(failure: Failure, alike: Sequence[int]) -> Iterator[str]:
    rank, ended = failure.cause.rank, children.name_of_status(failure.status)
    for child in failure.stopped:
        yield f"rank {child.rank} was stopped at that time (SIGSTOP, a debugger, or the terminal) and did not go on"
    too = f"; {listed(alike)} ended with the same traceback" if alike else ""
    yield f"rank {rank} failed first, with {ended} after {failure.seconds:.1f} s{too}"


def _why(failure: Failure, traceback: Sequence[bytes]) -> Iterator[str]:
    """The cause in a sentence, where more is known than how the process ended."""
    frame = tracebacks.place(traceback)
    if failure.status == -signal.SIGKILL:
        if failure.cause not in failure.stopped:
            yield failure.hint
    elif -failure.status in _CRASHES:
        where = f"; Python was at {frame.place}" if frame is not None else ""
        yield f"native code crashed (TensorFlow, a driver, or an extension module){where}"
    elif failure.told:
        yield failure.told
    elif said := tracebacks.raised(traceback):
        yield f"{said} (at {frame.place})" if frame is not None else said


def _last_line(line: bytes) -> Iterator[str]:
    if line:
        yield f"the last line of its stderr: {line.decode('utf-8', 'replace').strip()}"


def listed(ranks: Sequence[int]) -> str:
    """`rank 1`, `ranks 1 and 2`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
