"""What a process that ends, or is about to, can know of the reason."""

import sys
import time
from collections.abc import Callable

REASON_SECONDS = 5.0
"""The launcher knows of a rank's end within milliseconds; on a crowded machine its word may take longer."""


def reason_within(ask: Callable[[], str | None], seconds: float) -> str | None:
    """Why the job ends, asked for until it is known or the time is over."""
    until = time.monotonic() + seconds
    while (found := ask()) is None and time.monotonic() < until:
        time.sleep(0.02)
    return found


def uncaught() -> BaseException | None:
    """What ends this process, as its exit handlers see it: the exception that nobody has caught."""
    found: BaseException | None = getattr(sys, "last_value", None)
    return found
