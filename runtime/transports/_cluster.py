"""TensorFlow's own way between processes: a gRPC server in each rank, which its collectives use."""

import contextlib
import json
import os
import random
import socket
from collections.abc import Iterator, Mapping

import tensorflow as tf

from ..foundation import PORTS, Topology, TransportError, allowed_ports, pin
from . import Place

_JOB = "worker"
_EPHEMERAL = "/proc/sys/net/ipv4/ip_local_port_range"
_NO_PROXY = "no_grpc_proxy"  # gRPC knows it in lower case only
_TRIES = 256  # ports
_UNKNOWN = 2  # the code of tf.errors.UnknownError, which errors from Python code in a graph have too


def has_gpu(topology: Topology) -> bool:
    """Whether TensorFlow has a GPU for each rank of this host."""
    return len(tf.config.list_physical_devices("GPU")) >= topology.local_size


def agree(place: Place, name: str, mine: Mapping[str, object]) -> list[Mapping[str, object]]:
    """What every rank says under this name, by rank."""
    return [json.loads(said) for said in place.store.gather(f"transport/{name}", json.dumps(dict(mine)).encode())]


def start(place: Place, *, gpu: bool) -> None:
    """Start this rank's server and make the others' known; with `gpu`, collectives may be between GPUs.

    TensorFlow binds the server to all interfaces without authentication. Its GPUs are pinned here, because
    TensorFlow cannot be told about them afterwards.

    Raises:
        TransportError: TensorFlow has been used already, or the server does not start.
    """
    topology = place.topology
    if tf.config.list_physical_devices("GPU"):
        pin(topology)
    with _reserved_port() as port:
        host = f"[{place.address}]" if ":" in place.address else place.address
        said = agree(place, "address", {"address": f"{host}:{port}"})
    addresses = [str(each["address"]) for each in said]
    _reach_directly({address.rpartition(":")[0].strip("[]") for address in addresses})
    try:
        with _environment(
            {
                "DTENSOR_JOB_NAME": _JOB,
                "DTENSOR_JOBS": ",".join(addresses),
                "DTENSOR_CLIENT_ID": str(topology.rank),
                "DTENSOR_NUM_CLIENTS": str(topology.size),
            }
        ):
            # The only public call that starts the server without a strategy. Its coordination service would end ranks
            # whose peer says nothing for ten seconds, which one that is stopped or swaps may well do.
            tf.experimental.dtensor.initialize_accelerator_system(
                "GPU" if gpu else "CPU", enable_coordination_service=False
            )
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise TransportError(
            f"rank {topology.rank} cannot start TensorFlow's collectives: {error}. Call dp.init() before anything else "
            "of TensorFlow, or set TFDP_TRANSPORT=shared_memory"
        ) from error
    agree(place, "started", {})


def break_off(message: str) -> None:
    """Make the collectives that are under way in this process fail, and all that follow."""
    # Private, the same from 2.4 to 2.21, and without a public equal: an operation that waits for a peer that is gone
    # (or stopped) can be ended in no other way than with the process, which would then say nothing.
    from tensorflow.python.eager import context

    context.context().abort_collective_ops(_UNKNOWN, message)


@contextlib.contextmanager
def _reserved_port() -> Iterator[int]:
    """A free port of those that are allowed, else outside the range from which the system takes ports for outgoing
    connections.

    It is bound until the block ends, so that no other rank of this host is given it too; TensorFlow's server then
    takes it over.
    """
    allowed = allowed_ports(os.environ)
    with open(_EPHEMERAL) as file:
        low = int(file.read().split()[0])
    among = range(10_000, max(low, 20_000)) if allowed is None else allowed
    for port in random.SystemRandom().sample(among, min(len(among), _TRIES)):
        with socket.socket() as held:
            try:
                held.bind(("", port))
            except OSError:
                continue
            yield port
            return
    where = f"from {among[0]} to {among[-1]}"
    more = "" if allowed is None else f" ({PORTS}): each rank of a host needs one, and the first host one more"
    raise TransportError(f"no free TCP port was found {where}{more}")


def _reach_directly(hosts: set[str]) -> None:
    """An HTTP proxy in the environment is not for the ranks of a job."""
    before = os.environ.get(_NO_PROXY) or os.environ.get("no_proxy") or ""
    os.environ[_NO_PROXY] = ",".join([*filter(None, [before]), *sorted(hosts)])


@contextlib.contextmanager
def _environment(change: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in change}
    os.environ.update(change)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
