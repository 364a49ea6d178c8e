"""Hosts that SageMaker has started for one training job, with one process on each."""

import json
from collections.abc import Mapping

from ..foundation import LaunchEnvironmentError
from .found import Found, require

ENGINE = "SageMaker"
_HOSTS, _MINE = "SM_HOSTS", "SM_CURRENT_HOST"


def find(environ: Mapping[str, str]) -> Found | None:
    """The rank, None where this engine has not started the process.

    Raises:
        LaunchEnvironmentError: its variables are incomplete, or contradict each other.
    """
    if _HOSTS not in environ and _MINE not in environ:
        return None
    require(environ, ENGINE, (_HOSTS, _MINE))
    try:
        hosts = sorted(map(str, json.loads(environ[_HOSTS])))
    except (ValueError, TypeError):
        raise LaunchEnvironmentError(f"{_HOSTS} is {environ[_HOSTS]!r}: a JSON list of hosts was expected") from None
    if environ[_MINE] not in hosts:
        raise LaunchEnvironmentError(f"{_MINE} is {environ[_MINE]!r}, which is none of the hosts {', '.join(hosts)}")
    return Found(ENGINE, hosts.index(environ[_MINE]), len(hosts), 0, 1, ",".join(hosts), hosts[0])
