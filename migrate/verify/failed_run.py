"""A run that failed by itself: the cause in one sentence, its place in the file that it names, and the traceback."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from pathlib import Path

from . import obstacles
from .judge import Comparison
from .moved import Moved
from .proof import FailedRun
from .record import Crash, Trace, one_line, read_crash
from .runs import Ended

_SIGNALLED = 128  # the launcher's exit status for signal N is as much more
_SHORT = 8  # lines
_MARK = re.compile(r"\[(\d+)\]|tfdp: ")  # in front of a line, of a rank's or the launcher's own


def failed_run(ended: Ended, traces: Sequence[Trace], moved: Moved, timeout: float, name: str = "") -> FailedRun | None:
    """What became of a run, None where it ended as it should.

    traces: of its ranks. timeout: the seconds that it had. name: of a run of one process.
    """
    if ended.code == 0:
        return None
    crashes = {rank: found for rank, trace in enumerate(traces) if (found := read_crash(trace.folder)) is not None}
    hint = obstacles.hint(ended.output, str(Path.cwd()))
    silent = [rank for rank, trace in enumerate(traces) if rank not in crashes and trace.header() is None]
    if ended.code is None:
        return _late(ended, traces, hint, timeout, name)
    if not crashes or (silent and all(crash.follows for crash in crashes.values())):
        return _without_exception(ended.code, ended.output, traces, silent, hint, name)
    rank, first = min(crashes.items(), key=lambda item: (item[1].follows, item[1].moment))
    hint = hint or obstacles.hint(f"{first.kind}: {first.message}", str(Path.cwd()))
    place = moved.place(first.line) if first.line else ""
    where = f" at {place}" + (f" (in {first.function})" if first.function else "") if place else ""
    alike = [number for number, each in crashes.items() if (each.kind, each.line) == (first.kind, first.line)]
    who = name or ("every rank" if len(alike) == len(traces) else f"rank {rank}")
    cause = f"{who} failed in step {traces[rank].closed_steps()}{where}: {moved.message(_error(first))}"
    return FailedRun(cause, hint, place, first.short, first.traceback, f"{first.kind}: {first.message}")


def diverged(traces: Sequence[Trace]) -> bool:
    """Whether a rank was ended by the proof itself: it took more gradients in a step than the reference."""
    headers = [trace.header() for trace in traces]
    return any(header is not None and header.outcome == "diverged" for header in headers)


def cut_short(found: Comparison, ranks: Sequence[Trace]) -> bool:
    """Whether no rank has come to the end of the step in which calls are missing."""
    if found.failure is None or found.failure.kind != "calls" or found.failure.step is None:
        return False
    steps = [rank.step(found.failure.step) for rank in ranks]
    return not any(step is not None and step.closed for step in steps)


def _error(crash: Crash) -> str:
    """The error in one line."""
    if crash.kind == "SystemExit":
        by_number = crash.message.isdigit()
        return f"it ended with exit status {crash.message}" if by_number else f"it ended by sys.exit: {crash.message}"
    return one_line(crash.kind, crash.message)


def _late(ended: Ended, traces: Sequence[Trace], hint: str, timeout: float, name: str) -> FailedRun:
    steps = min(trace.closed_steps() for trace in traces)
    cause = f"{name or 'the migrated run'} was not done in {timeout:g} s, in which it came to step {steps}"
    return _as_said(cause, hint, _said_by(range(len(traces)), ended.output))


def _without_exception(  # noqa: PLR0917
    code: int, output: str, traces: Sequence[Trace], silent: Sequence[int], hint: str, name: str
) -> FailedRun:
    """The run of a process that was killed, or left without a word to Python. silent: the ranks that may be it."""
    may_be = silent or range(len(traces))
    own = min(traces[rank].closed_steps() for rank in may_be)
    # Its last step may have been done: a step is closed when the next one begins, as the others have perhaps seen.
    steps = min(own + 1, max(trace.closed_steps() for trace in traces))
    who = name or (f"rank {silent[0]}" if len(silent) == 1 else "a rank")
    number = _signal(code)
    how = f"was ended by {signal.Signals(number).name}" if number else f"ended with exit status {code}"
    if number == signal.SIGKILL:
        hint = hint or "the system kills a process so when memory is short"
    return _as_said(f"{who} {how} in step {steps}", hint, _said_by(may_be, output))


def _as_said(cause: str, hint: str, said: Sequence[str]) -> FailedRun:
    whole = "\n".join(said)
    return FailedRun(cause, hint, "", "\n".join(said[-_SHORT:]), whole, whole)


def _said_by(ranks: Sequence[int], output: str) -> list[str]:
    """The lines of these ranks, without those of others and of the launcher; all of a run that has no launcher."""
    marks = [(line, _MARK.match(line)) for line in output.splitlines()]
    return [line for line, mark in marks if mark is None or (mark[1] is not None and int(mark[1]) in ranks)]


def _signal(code: int) -> int:
    """The signal by which a run was ended, 0 where it ended by itself."""
    number = -code if code < 0 else code - _SIGNALLED
    return number if number in {each.value for each in signal.Signals} else 0
