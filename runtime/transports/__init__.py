"""The ways between the ranks, and which one a job takes."""

import functools
import glob
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..foundation import Topology, TransportError
from ..store import Store
from ._arena import DEFAULT_BYTES, FINISHED, Arena
from ._mirror import Mirror
from ._protocol import Label, Tensor, Transport
from .later import Later
from .solo import Solo

if TYPE_CHECKING:
    from ._tiers import Tiers

__all__ = [
    "DEFAULT_BYTES",
    "FINISHED",
    "VARIABLE",
    "Arena",
    "Label",
    "Mirror",
    "Place",
    "Tensor",
    "Transport",
    "choose",
    "connect",
]

VARIABLE = "TFDP_TRANSPORT"


@dataclass(frozen=True)
class Place:
    """What a transport needs to know of the job.

    memory_fd: leads to the memory that the host's ranks share. address: where the other hosts reach this one.
    """

    topology: Topology
    store: Store
    memory_fd: int = -1
    stall_seconds: float = 0.0
    address: str = "127.0.0.1"

    @property
    def on_one_host(self) -> bool:
        """Whether all ranks of the job are on this host."""
        return self.topology.local_size == self.topology.size


def _solo(_: Place) -> Transport:
    return Solo()


def _shared_memory(place: Place) -> Transport:
    here, size = place.topology.local_size, place.topology.size
    if not place.on_one_host:
        raise TransportError(
            f"{VARIABLE}=shared_memory reaches the {here} ranks of this host; the job has {size}. Use "
            "ring, or leave it unset"
        )
    arena = Arena(place.memory_fd, size)  # before the seconds that TensorFlow takes to import

    from .host import OnHost
    from .shared_memory import SharedMemory

    return OnHost(SharedMemory(arena, place.topology, place.stall_seconds))


def _collectives(place: Place, name: str) -> Transport | None:
    """TensorFlow's collectives; None for "automatic" where memory reaches all ranks, and not each has a GPU."""
    arena = Arena(place.memory_fd, place.topology.size)

    from . import _cluster, _tiers
    from ._lane import Lane
    from .device import Device

    topology = place.topology
    said = _cluster.agree(
        place,
        "place",
        {
            "gpu": _cluster.has_gpu(topology),
            "local_size": topology.local_size,
            "place": [topology.local_rank, topology.cross_rank],
        },
    )
    gpus = [bool(each["gpu"]) for each in said]
    if name == "automatic" and not all(gpus) and place.on_one_host:
        return None
    if name == "nccl" and not all(gpus):
        raise TransportError(
            f"{VARIABLE}=nccl needs a GPU for each rank; TensorFlow finds none for rank(s) "
            f"{', '.join(str(rank) for rank, gpu in enumerate(gpus) if not gpu)}. Use ring or shared_memory"
        )
    no_tiers = _tiers.possible(said)
    if name == "two_tier" and no_tiers:
        raise TransportError(f"{VARIABLE}=two_tier is for several hosts with several ranks each: {no_tiers}. Use ring")
    hint = "nccl" if all(gpus) and name not in ("ring", "two_tier") else "ring"
    _cluster.start(place, gpu=hint == "nccl")
    spread = None if place.on_one_host else place.store.spread
    lane = Lane(arena, topology.rank, place.stall_seconds, _cluster.break_off, spread)
    by_host = hint == "ring" and name not in ("ring", "device") and not no_tiers
    return Device(lane, topology, hint, _of_host(arena, place, said) if by_host else None)


def _of_host(arena: Arena, place: Place, said: Sequence[Mapping[str, object]]) -> "Tiers":
    """The ways of this rank inside its host and out of it."""
    from ._tiers import Tiers
    from .shared_memory import SharedMemory

    here, topology = arena.beside(place.topology.rank), place.topology
    assert here is not None
    # The lane sees to stalls: a rank that has come to a collective comes through it, or the job ends.
    alone = Topology(topology.local_rank, topology.local_size, topology.local_rank, topology.local_size, 0, 1)
    memory = SharedMemory(here, alone, math.inf)
    places = [tuple(cast("list[int]", each["place"])) for each in said]
    return Tiers(memory, topology, [(local, host) for local, host in places])


def _automatic(place: Place) -> Transport:
    return _collectives(place, "automatic") or _shared_memory(place)


# `device` is `nccl` where every rank has a GPU, else `ring`.
_CONNECT: Mapping[str, Callable[[Place], Transport | None]] = {
    "solo": _solo,
    "shared_memory": _shared_memory,
    **{name: functools.partial(_collectives, name=name) for name in ("device", "nccl", "ring", "two_tier")},
}


def choose(topology: Topology, environ: Mapping[str, str]) -> str:
    """The name of the transport: solo for one worker, else what TFDP_TRANSPORT says, else shared_memory.

    It is "automatic" where there seem to be GPUs, since TensorFlow must be asked whether it can use them; and on
    several hosts, where it is nccl or ring.

    Raises:
        TransportError: TFDP_TRANSPORT names none that exists, or solo for several workers.
    """
    asked = environ.get(VARIABLE, "")
    if asked and asked not in _CONNECT:
        raise TransportError(f"{VARIABLE} is {asked!r}; it can be {' or '.join(_CONNECT)}, or unset to have one chosen")
    if topology.size == 1:
        return "solo"
    if asked == "solo":
        raise TransportError(f"{VARIABLE}=solo is for one worker; this job has {topology.size}. Use shared_memory")
    alone = topology.local_size == topology.size
    return asked or ("shared_memory" if alone and not gpus_seem_there(environ) else "automatic")


def gpus_seem_there(environ: Mapping[str, str], devices: Sequence[str] = ("/dev/nvidia[0-9]*", "/dev/dxg")) -> bool:
    """Whether this host has GPUs that are not hidden from this process; TensorFlow, if asked, would take them."""
    if environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        return False
    return any(glob.glob(pattern) for pattern in devices)


def later(connect: Callable[[], Transport]) -> Transport:
    """A transport that `connect` makes when the script has imported TensorFlow."""
    return cast(Transport, Later(connect))


def connect(name: str, place: Place) -> Transport:
    """The transport of that name for this process."""
    transport = _automatic(place) if name == "automatic" else _CONNECT[name](place)
    assert transport is not None
    return transport
