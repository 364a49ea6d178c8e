"""`tfdp run`: what is asked for is looked at, then started."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import inputs, unjoined
from .report.streams import say

_WOULD_TRAIN_APART = 1
_USAGE_ERROR = 2


def run(
    size: int, command: Sequence[str], independent: bool, shown: Mapping[str, Any], nodes: Mapping[str, Any]
) -> int:
    """Start a script or command on `size` processes and return the exit code.

    shown: as `launch.Screen` takes it. nodes: as `launch.of_options` does.
    """
    from ..runtime import launch

    first = command[0]
    if (os.path.isdir(first) or not os.access(first, os.X_OK)) and (reason := inputs.no_script(first)):
        say(f"tfdp: error: {reason}")
        return _USAGE_ERROR
    if size > 1 and not independent and (found := unjoined.certainly_trains(command)) is not None:
        say(f"tfdp: {launch.independent_copies(size, *found)}")
        return _WOULD_TRAIN_APART
    others = functools.partial(launch.of_options, **nodes)
    return launch.main(size, command, launch.Screen(**shown), independent=independent, nodes=others)
