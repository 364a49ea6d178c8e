"""The errors a migrated script can meet. Every one derives from `TfdpError`, itself a `RuntimeError`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

_heard: list[Callable[[TfdpError], None]] = []


class TfdpError(RuntimeError):
    """Base of all errors of the runtime."""

    if not TYPE_CHECKING:
        __init__ = Exception.__init__  # by which AutoGraph knows that it can raise the same one with more to say

        def __new__(cls, *args: Any) -> TfdpError:
            made = super().__new__(cls, *args)
            for hear in _heard:
                hear(made)
            return made


def hear_errors(hear: Callable[[TfdpError], None]) -> None:
    """Call `hear` with each error that is made from now on."""
    _heard.append(hear)


class NotInitializedError(TfdpError):
    """A call that needs the job was made before `dp.init()` or after `dp.shutdown()`."""


class TopologyError(TfdpError, ValueError):
    """Rank and size numbers that contradict each other."""


class LaunchEnvironmentError(TfdpError):
    """The TFDP_* variables say that a launcher started this process, but what they point to is not there."""


class TransportError(TfdpError):
    """The way between the ranks cannot be set up as asked for."""


class CollectiveMismatchError(TfdpError):
    """The ranks met in different collectives, or in one with different shapes, dtypes, operation or name."""


class JobAborted(TfdpError):  # noqa: N818 - a state of the job that this rank is told about, not its own mistake
    """The job is ending because another rank failed; the message gives the first cause."""


class RankFinishedError(JobAborted):
    """A collective or a fetch needs a rank whose process has already ended without an error."""


class StallError(TfdpError):
    """A rank waited longer than the stall limit (`TFDP_STALL_SECONDS`) for the others."""


class StoreError(TfdpError):
    """A value of the job's store cannot be given."""


class StoreTimeout(StoreError, TimeoutError):  # noqa: N818 - named as the TimeoutError it is
    """Nobody published the key in time."""

    if not TYPE_CHECKING:
        __new__ = TimeoutError.__new__  # an OSError is made by its own; nobody has to hear of this one


class StoreEvictedError(StoreError):
    """The value is gone: the store was full, or every reader it was published for has read it."""
