"""Paths, and the files that the job itself changes."""

import os
import time

PATHS = (str, bytes, os.PathLike)
_SLACK = 2.0  # seconds by which file systems round
_began = time.time() - _SLACK


def is_of_this_job(changed: float) -> bool:
    """Whether a file that was changed then, in seconds, was changed since the job began."""
    return changed >= _began
