"""Paths, and the files that the job itself changes."""

import os
import time

PATHS = (str, bytes, os.PathLike)
LARGE = 1 << 28  # bytes: a file of so many is sent to the other workers
_SLACK = 2.0  # seconds by which file systems round
_began = time.time() - _SLACK


def is_of_this_job(changed: float) -> bool:
    """Whether a file that was changed then, in seconds, was changed since the job began."""
    return changed >= _began
