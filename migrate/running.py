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
_PLACE = ("nnodes", "node_rank", "root", "start_timeout", "link_timeout")


def run(
    size: int,
    command: Sequence[str],
    independent: bool,
    shown: Mapping[str, Any],
    place: Mapping[str, Any],
    *,
    restarts: int = 0,
) -> int:
    """Start a script or command on `size` processes and return the exit code.

    shown: as `launch.Screen` takes it. place: the options about the other hosts. restarts: how many at most.
    """
    from ..runtime import launch

    if (status := _refused(size, command, independent)) is not None:
        return status
    count, node, root, start, link = (place[name] for name in _PLACE)
    others = functools.partial(launch.of_options, count, node, root, start, link)
    screen = launch.Screen(**shown)
    return launch.main(size, command, screen, independent=independent, nodes=others, max_restarts=restarts)


def run_on_hosts(
    size: int | None, command: Sequence[str], independent: bool, shown: Mapping[str, Any], given: Mapping[str, Any]
) -> int:
    """Start a script or command on the hosts of `-H` or a hostfile, and return the exit code."""
    from ..runtime import launch

    try:
        hosts = launch.cluster_of(given["hosts"], given["hostfile"], size)
        if (status := _refused(sum(each.count for each in hosts), command, independent)) is not None:
            return status
        times = given["start_timeout"], given["link_timeout"]
        cluster = launch.Cluster(hosts, tuple(given["forwarded"]), given["root"], *times)
        return launch.over_ssh(cluster, command, launch.Screen(**shown), independent=independent)
    except launch.CommandError as error:
        say(f"tfdp: {error}")
        return _USAGE_ERROR


def _refused(size: int, command: Sequence[str], independent: bool) -> int | None:
    """The exit code where nothing is to be started, which has been said."""
    from ..runtime import launch

    first = command[0]
    if (os.path.isdir(first) or not os.access(first, os.X_OK)) and (reason := inputs.no_script(first)):
        say(f"tfdp: error: {reason}")
        return _USAGE_ERROR
    if size > 1 and not independent and (found := unjoined.certainly_trains(command)) is not None:
        say(f"tfdp: {launch.independent_copies(size, *found, found[0])}")
        return _WOULD_TRAIN_APART
    return None
