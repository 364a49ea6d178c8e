"""How ranks that an engine has started come to what `tfdp run` hands to its own: memory, store, seed.

The first rank of a host binds a socket, whose name only the ranks of this job on this host know, and starts the agent
that serves it (`tfdp.runtime.agent`). Every rank asks there and gets the two file descriptors. The name is an abstract
one: there is no file and no port, the kernel tells each end which user the other is, and with the agent it is gone.
"""

import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..foundation import LaunchEnvironmentError, StallError, Topology
from . import local
from .found import Found

LARGEST = 2**16  # bytes of one message
# Not the script's folder: what is imported there is the user's.
_AGENT = (
    "import sys; sys.path[:] = [place for place in sys.path if place]; from tfdp.runtime.agent.process import main; "
    "sys.exit(main(*sys.argv[1:]))"
)
_PEER = struct.Struct("3i")  # process, user and group
_POLL_SECONDS = 0.05


def joined(found: Found, stall_seconds: float, version: str) -> dict[str, str]:
    """The TFDP_* variables of a rank, with file descriptors that lead from this process to its agent.

    Args:
        found: the rank.
        stall_seconds: how long the agent, and so the first rank of this host, may be awaited.
        version: of tfdp; the ranks of a job have the same.

    Raises:
        LaunchEnvironmentError: the agent refuses this process, or does not start.
        StallError: nobody has started an agent in time.
    """
    name = _name(found)
    agent = _started(found, name, stall_seconds) if found.local_rank == 0 else None
    with _connected(found, name, stall_seconds, agent) as there:
        asked = {
            "version": version,
            "rank": found.rank,
            "size": found.size,
            "order": hash("tfdp"),
        }
        there.send(json.dumps(asked).encode())
        try:
            answer, fds, _, _ = socket.recv_fds(there, LARGEST, 2)
        except TimeoutError:
            raise StallError(
                f"rank {found.rank} has waited {stall_seconds:g} s for the other ranks of its host, or for the other "
                "hosts, to call dp.init()"
            ) from None
        except OSError as error:
            raise LaunchEnvironmentError(f"the agent of this host has ended ({error}); it says why on stderr") from None
    if len(fds) < 2:
        for fd in fds:
            os.close(fd)
        said = json.loads(answer)["refused"] if answer else "the agent of this host has ended; it says why on stderr"
        raise LaunchEnvironmentError(f"rank {found.rank}, started by {found.engine}: {said}")
    given = json.loads(answer)
    topology = Topology(
        found.rank, found.size, found.local_rank, found.local_size, given["cross_rank"], given["cross_size"]
    )
    given_to_it = local.variables(topology, given["seed"], given["job"], store_fd=fds[0], memory_fd=fds[1])
    return {**given_to_it, local.ADDRESS: given["address"]}


def answer(there: socket.socket, given: Mapping[str, Any], fds: tuple[int, int] | None) -> None:
    """The agent's word to a rank that has asked: with `fds` what it needs, else why it gets nothing."""
    socket.send_fds(there, [json.dumps(dict(given)).encode()], list(fds or ()))


def other_end(there: socket.socket) -> tuple[int, int]:
    """The process and the user at the other end of a local socket, by the kernel's word."""
    pid, user, _ = _PEER.unpack(there.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return pid, user


def _name(found: Found) -> str:
    told = hashlib.sha256(f"{found.engine}\n{found.job}".encode()).hexdigest()[:32]
    return f"\0tfdp/{os.getuid()}/{told}"


def _started(found: Found, name: str, stall_seconds: float) -> "subprocess.Popen[bytes]":
    """The agent, on the socket that this process has bound: whoever connects from now on is heard."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    until = _until(stall_seconds)
    while True:
        try:
            listener.bind(name)
            break
        except OSError as error:  # the agent of what the same job has run before is ending
            until(error, f"rank {found.rank} cannot bind the socket of this job's agent")
    listener.listen(found.local_size)
    with listener:
        order = {"engine": found.engine, "size": found.size, "local_size": found.local_size, "root": found.root}
        return subprocess.Popen(
            [sys.executable, "-c", _AGENT, str(listener.fileno()), json.dumps(order)],
            stdin=subprocess.DEVNULL,
            stdout=2,  # it has nothing to say but what belongs on stderr
            pass_fds=(listener.fileno(),),
            start_new_session=True,  # what ends this process's group is to be told of by it
        )


def _connected(found: Found, name: str, stall_seconds: float, agent: "subprocess.Popen[bytes] | None") -> socket.socket:
    until = _until(stall_seconds)
    while True:
        there = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            there.connect(name)
            break
        except OSError as error:
            there.close()
            if agent is not None and agent.poll() is not None:
                raise LaunchEnvironmentError(f"the agent of this host has ended with {agent.returncode}") from None
            until(error, f"rank {found.rank} waits for local rank 0 of its host, which starts the agent of this job")
    pid, user = other_end(there)
    if user not in (os.getuid(), 0):
        there.close()
        raise LaunchEnvironmentError(f"process {pid} of user {user} stands where this job's agent should be")
    there.settimeout(stall_seconds)
    return there


def _until(stall_seconds: float) -> Callable[[OSError, str], None]:
    """Sleeps a moment at each call, and raises where that has gone on for too long."""
    began = time.monotonic()

    def wait(error: OSError, what: str) -> None:
        waited = time.monotonic() - began
        if waited > stall_seconds:
            raise StallError(
                f"{what}: {error}, for {waited:.0f} s now. Has it called dp.init()? If it may take that long, raise "
                f"TFDP_STALL_SECONDS (now {stall_seconds:g})"
            ) from None
        time.sleep(_POLL_SECONDS)

    return wait
