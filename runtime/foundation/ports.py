"""At which TCP ports the processes of a job may listen."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from .errors import TransportError

PORTS = "TFDP_PORT_RANGE"
_RANGE = re.compile(r"(\d+)(?:-(\d+))?$")


def allow_ports(named: str | None) -> None:
    """The ports at which processes of the next job may listen, on all hosts; None for those of the environment."""
    if named is not None:
        os.environ[PORTS] = named


def allowed_ports(environ: Mapping[str, str]) -> range | None:
    """Those from LOW to HIGH where TFDP_PORT_RANGE is LOW-HIGH; None where it is not set.

    Raises:
        TransportError: it is no range of ports that an ordinary user may listen at.
    """
    text = environ.get(PORTS)
    if not text:
        return None
    found = _RANGE.match(text)
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1024 <= low <= high <= 65535:
        raise TransportError(
            f"{PORTS} (--port-range) is {text!r}: give the first and the last port that the firewall leaves open, from "
            "1024 to 65535, as in 29000-29100"
        )
    return range(low, high + 1)
