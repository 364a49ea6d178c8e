"""The ways between the ranks, and which one a job takes."""

from collections.abc import Callable, Mapping

from tfdp.runtime.errors import TransportError
from tfdp.runtime.topology import Topology
from tfdp.runtime.transports._protocol import Label, Tensor, Transport
from tfdp.runtime.transports.solo import Solo

__all__ = ["VARIABLE", "Label", "Tensor", "Transport", "choose", "connect"]

VARIABLE = "TFDP_TRANSPORT"


def _solo(topology: Topology, memory_fd: int, stall_seconds: float) -> Transport:  # noqa: ARG001
    if topology.size > 1:
        raise TransportError(f"{VARIABLE}=solo is for one worker; this job has {topology.size}. Use shared_memory")
    return Solo()


def _shared_memory(topology: Topology, memory_fd: int, stall_seconds: float) -> Transport:
    from tfdp.runtime.transports._arena import Arena

    if topology.local_size != topology.size:
        raise TransportError(
            f"shared_memory reaches the {topology.local_size} ranks of this host; the job has {topology.size}"
        )
    arena = Arena(memory_fd, topology.size)  # before the seconds that TensorFlow takes to import

    from tfdp.runtime.transports.host import OnHost
    from tfdp.runtime.transports.shared_memory import SharedMemory

    return OnHost(SharedMemory(arena, topology, stall_seconds))


# A transport over TensorFlow's own collectives is one more line here, and a case in `choose`.
_CONNECT: Mapping[str, Callable[[Topology, int, float], Transport]] = {"solo": _solo, "shared_memory": _shared_memory}


def choose(topology: Topology, environ: Mapping[str, str]) -> str:
    """The name of the transport: solo for one worker, else what TFDP_TRANSPORT says, else one that reaches all ranks.

    Raises:
        TransportError: TFDP_TRANSPORT names none that exists.
    """
    asked = environ.get(VARIABLE, "")
    if asked and asked not in _CONNECT:
        raise TransportError(f"{VARIABLE} is {asked!r}; it can be {' or '.join(_CONNECT)}, or unset to have one chosen")
    if topology.size == 1:
        return "solo"
    return asked or "shared_memory"


def connect(name: str, topology: Topology, memory_fd: int, stall_seconds: float) -> Transport:
    """The transport of that name for this process."""
    return _CONNECT[name](topology, memory_fd, stall_seconds)
