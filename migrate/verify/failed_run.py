"""A run that failed by itself: the cause in one sentence, its place in the file that it names, and the traceback."""

from __future__ import annotations

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


def failed_run(ended: Ended, traces: Sequence[Trace], moved: Moved, timeout: float, name: str = "") -> FailedRun | None:
    """What became of a run, None where it ended as it should.

    traces: of its ranks. timeout: the seconds that it had. name: of a run of one process.
    """
    if ended.code == 0:
        return None
    crashes = {rank: found for rank, trace in enumerate(traces) if (found := read_crash(trace.folder)) is not None}
    hint = obstacles.hint(ended.output, str(Path.cwd()))
    if not crashes or ended.code is None:
        return _without_exception(ended, traces, hint, timeout, name)
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


def _without_exception(ended: Ended, traces: Sequence[Trace], hint: str, timeout: float, name: str) -> FailedRun:
    """The run of a process that was killed, left without a word to Python, or did not end."""
    steps = min(trace.closed_steps() for trace in traces)
    silent = [rank for rank, trace in enumerate(traces) if trace.header() is None]
    who = name or (f"rank {silent[0]}" if len(silent) == 1 else "a rank")
    if ended.code is None:
        cause = f"{name or 'the migrated run'} was not done in {timeout:g} s, in which it came to step {steps}"
    else:
        number = _signal(ended.code)
        how = f"was ended by {signal.Signals(number).name}" if number else f"ended with exit status {ended.code}"
        cause = f"{who} {how} in step {steps}"
        if number == signal.SIGKILL:
            hint = hint or "the system kills a process so when memory is short"
    return FailedRun(cause, hint, "", _last(ended.output), ended.output, ended.output)


def _signal(code: int) -> int:
    """The signal by which a run was ended, 0 where it ended by itself."""
    number = -code if code < 0 else code - _SIGNALLED
    return number if number in {each.value for each in signal.Signals} else 0


def _last(output: str) -> str:
    return "\n".join(output.splitlines()[-_SHORT:])
