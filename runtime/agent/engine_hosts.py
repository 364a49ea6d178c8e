"""How the agents of hosts on which an engine has started ranks find each other: by its word, or by the user's."""

import os
import socket
from collections.abc import Callable, Sequence

from ..clusters.local import SECRET
from ..foundation import TransportError
from .link import Link
from .rendezvous import Comer, Meeting, Plan, address_of, met

ROOT, START = "TFDP_ROOT", "TFDP_START_SECONDS"
SHORTEST = 16
DEFAULT_START_SECONDS = 300.0


def meet_hosts(
    engine: str, size: int, ranks: Sequence[int], root: str, order: int, *, said: Callable[[str], None]
) -> tuple[Plan, list[Link]]:
    """Meet the agents of the other hosts of a job of `size` ranks, of which `ranks` are here.

    Args:
        engine: what has started them, for messages.
        root: the host of rank 0 by the engine's word, or empty; TFDP_ROOT counts more.
        order: as `Comer` has it.
        said: called with a line for the user.

    Raises:
        TransportError: they do not come together, or what they need is not said.
    """
    place, secret = os.environ.get(ROOT) or root, os.environ.get(SECRET, "")
    missing = [name for name, value in ((ROOT, place), (SECRET, secret)) if not value]
    if missing:
        raise TransportError(
            f"{engine} has started {len(ranks)} of {size} ranks on {socket.gethostname()}, and the others elsewhere: "
            f"set {' and '.join(missing)} on all hosts (`mpirun -x`, or export before srun). {ROOT} is host or "
            f"host:port of rank 0 as the others reach it, {SECRET} a text of {SHORTEST} characters or more"
        )
    try:
        address = address_of(place)
    except ValueError as error:
        raise TransportError(f"{ROOT}: {error}") from None
    if len(secret) < SHORTEST:
        raise TransportError(f"{SECRET} has {len(secret)} characters: {SHORTEST} or more are needed")
    try:
        limit = float(os.environ.get(START) or DEFAULT_START_SECONDS)
    except ValueError:
        limit = -1.0
    if not limit > 0:
        raise TransportError(f"{START} is {os.environ[START]!r}: a number of seconds greater than 0 is needed")
    meeting = Meeting(address, secret.encode(), size, by_rank=True, limit_seconds=limit, said=said)
    me = Comer(len(ranks), ranks=tuple(ranks), host=socket.gethostname(), order=order, expected=size)
    return met(meeting, me, is_root=0 in ranks)
