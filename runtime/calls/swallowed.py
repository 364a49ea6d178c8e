"""Errors of the runtime that the script has caught: the job must not go on as if nothing had been said.

A script that tries several nets, or passes over batches that fail, would take an error that one process does not meet
for a bad net or batch, and train something else.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Iterator

from ..foundation import JobAborted, StoreError, TfdpError, gist, hear_errors, uncaught
from ..job import end_badly


class _State:
    """Why the script must not go on."""

    said: str | None = None


_state = _State()


def watch_errors() -> None:
    """From now on no script goes on after an error that it has caught."""
    hear_errors(_heard)
    atexit.register(_last_look)


def refuse_swallowed() -> None:
    """End the job if the script goes on although it was told of an error."""
    if _state.said is not None:
        end_badly(_state.said)


def not_to_be_passed_over(reason: str) -> None:
    """The error that is on its way to the script ends the job, wherever it is caught."""
    if _state.said is None:
        _state.said = reason


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Errors in here are answers to the runtime, which catches them."""
    before = _state.said
    try:
        yield
    except Exception:
        _state.said = before
        raise


def forget() -> None:
    """Whoever has caught the last error was to do so."""
    _state.said = None


def _heard(error: TfdpError) -> None:
    if not isinstance(error, JobAborted | StoreError):  # of which the launcher, or the caller, knows
        _state.said = (
            "the script has caught an error of tfdp and gone on, which would train something else: "
            f"{gist(f'{type(error).__name__}: {error}')}. Let dp.TfdpError pass through where it catches errors"
        )


def _last_look() -> None:
    """At the end of a process that nothing has failed."""
    if uncaught() is None:
        refuse_swallowed()
