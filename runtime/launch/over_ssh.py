"""`tfdp run -H a:4,b:4`: a launcher on each host, started through the ssh client as the user has configured it.

What a host's launcher needs to know goes to its standard input, nothing of it onto a command line that others can see.
That input stays open: its end, as when this process is killed, ends the launcher there, and with it its ranks.
"""

import contextlib
import json
import math
import os
import queue
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from ..agent import address_of
from ..foundation import TransportError, allowed_ports
from . import watch
from .command import CommandError
from .nodes import Nodes
from .screen import Screen

SSH = "TFDP_SSH"
_OPTIONS = ("-o", "BatchMode=yes", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3", "-T")
_HERE = ("localhost", "127.0.0.1", "::1")
_PORTS = (20_000, 29_000)
BEGUN = b"tfdp: begun\n"
"""What a host's launcher writes first, before the output of its ranks."""
_GRACE_SECONDS = 15.0
_KILL_SECONDS = 30.0  # longer than a launcher gives its ranks to end
_POLL_SECONDS = 0.2
# What every host's ranks get of this environment, besides what `-x` names.
_FORWARDED = ("PYTHONPATH", "TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES")
_OURS = "TFDP_"
# Not by `-m`, which would import from the folder it stands in what the user has there.
_LAUNCHER = (
    "import sys; sys.path[:] = filter(None, sys.path); from tfdp.runtime.launch.remote import run; sys.exit(run())"
)
# What begins with a dash would be an option of ssh. A host alone has one slot, as mpirun's has.
_HOST = re.compile(
    r"(?P<host>\[[^\]\s]+\]|[^\s:\[\]-][^\s:\[\]]*)"
    r"(?:(?::|\s+slots\s*=\s*)(?P<count>\d+))?(?:\s+max[_-]slots\s*=\s*\d+)?"
)


@dataclass(frozen=True)
class Slots:
    """A host of `-H`, and how many ranks it is to have."""

    host: str
    count: int


@dataclass(frozen=True)
class Cluster:
    """What `tfdp run -H` was asked for. `root` is where the first host listens, by default its name in `hosts`."""

    hosts: tuple[Slots, ...]
    forwarded: tuple[str, ...] = ()
    root: str | None = None
    start_seconds: float | None = None
    link_seconds: float | None = None


def cluster_of(text: str | None, file: str | None, np: int | None) -> tuple[Slots, ...]:
    """The hosts of `-H a:4,b:4`, or of a file with `a slots=4`, `a:4` or `a` a line: the first `np` slots.

    Raises:
        CommandError: both are given, a host has no slots, is named twice, or there are fewer slots than `np`.
    """
    if text is not None and file is not None:
        raise CommandError("-H and --hostfile both name the hosts: give one of them")
    try:
        lines = [text] if file is None else [line.partition("#")[0] for line in open(file, encoding="utf-8")]  # noqa: SIM115
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--hostfile {file}: {getattr(error, 'strerror', None) or error}") from None
    words = [word for line in lines if line for word in (line.split(",") if file is None else [line])]
    found = [_slots(word.strip()) for word in words if word.strip()]
    if not found:
        raise CommandError(f"{'-H' if file is None else file} names no host: as in -H a:4,b:4")
    names = [each.host for each in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise CommandError(f"host {twice} is named twice: give all its slots at once")
    total = sum(each.count for each in found)
    if np is not None and np > total:
        raise CommandError(f"-np is {np}, and the hosts have {total} slots: {', '.join(map(_shown, found))}")
    left, used = np if np is not None else total, []
    for each in found:
        if left > 0:
            used.append(Slots(each.host, min(each.count, left)))
            left -= each.count
    return tuple(used)


def _slots(text: str) -> Slots:
    found = _HOST.fullmatch(text)
    count = int(found["count"] or 1) if found is not None else 0
    if found is None or count < 1:
        raise CommandError(f"{text!r} is no host with its number of ranks: host:4, or `host slots=4` in a file")
    return Slots(found["host"].strip("[]"), count)


def _shown(slots: Slots) -> str:
    return f"{slots.host}:{slots.count}"


def run(cluster: Cluster, argv: Sequence[str], screen: Screen, *, independent: bool) -> int:
    """Run a script or command on the ranks of all hosts; the exit status of the host that failed first, else 0.

    Raises:
        CommandError: a variable of `-x` is not set, or there is no ssh client.
    """
    missing = [name for name in cluster.forwarded if name not in os.environ]
    if missing:
        raise CommandError(f"-x {missing[0]}: this variable is not set here")
    first = cluster.hosts[0].host.rpartition("@")[2]  # without the user that ssh is to be
    try:
        address_of(cluster.root or "any")
        allowed = allowed_ports(os.environ)
    except ValueError as error:
        raise CommandError(f"--root: {error}") from None
    except TransportError as error:
        raise CommandError(str(error)) from None
    if first in _HERE and cluster.root is None and not all(_is_here(each.host) for each in cluster.hosts):
        raise CommandError(f"the first host is {first}, which others cannot reach: name it as they do, or add --root")
    port = secrets.choice(allowed or range(*_PORTS))
    root = cluster.root or (f"[{first}]:{port}" if ":" in first else f"{first}:{port}")
    keep = {name: os.environ[name] for name in (*_FORWARDED, *cluster.forwarded) if name in os.environ}
    keep |= {name: value for name, value in os.environ.items() if name.startswith(_OURS) and name != SSH}
    told = {
        "secret": secrets.token_hex(32),
        "folder": os.getcwd(),
        "argv": list(argv),
        "screen": asdict(screen),
        "independent": independent,
        "environ": keep,
    }
    started = _Started()
    for node, slots in enumerate(cluster.hosts):
        nodes = Nodes(len(cluster.hosts), node, root)
        times = {"start_seconds": cluster.start_seconds, "link_seconds": cluster.link_seconds}
        place = {**asdict(nodes), **{name: value for name, value in times.items() if value is not None}}
        alone = len(cluster.hosts) == 1
        started.add(slots, json.dumps({**told, "count": slots.count, "nodes": None if alone else place}))
    return started.wait()


class _Host:
    """One host's launcher, or the ssh client that leads to it."""

    def __init__(self, slots: Slots, line: Sequence[str], ended: Callable[["_Host"], None]) -> None:
        """`ended` is called, on another thread, when it has ended and all its output has been passed on."""
        self.slots, self.begun, self.status = slots, False, 0
        # A session of its own: Ctrl-C is for this process, which tells the hosts.
        self._process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        threading.Thread(target=self._follow, args=(ended,), daemon=True).start()

    def tell(self, told: str) -> None:
        """What it is to do."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, and says why
            self._process.stdin.write(told.encode() + b"\n")
            self._process.stdin.flush()

    def close(self) -> None:
        """Ask it to end."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def kill(self) -> None:
        """End what is here of it: the other end does not answer."""
        self._process.kill()

    def _follow(self, ended: Callable[["_Host"], None]) -> None:
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        self.begun = first == BEGUN
        os.write(1, b"" if self.begun else first)
        while data := os.read(self._process.stdout.fileno(), 2**16):
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]
        self.status = self._process.wait()
        ended(self)


class _Started:
    """The hosts' launchers, as this process has started them."""

    def __init__(self) -> None:
        self._hosts: list[_Host] = []
        self._ended: queue.SimpleQueue[_Host] = queue.SimpleQueue()
        self._signal: int | None = None
        self._kill_at = math.inf
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._stop)

    def add(self, slots: Slots, told: str) -> None:
        remote = [os.environ.get("TFDP_REMOTE_PYTHON") or sys.executable, "-c", _LAUNCHER]
        path = os.environ.get("PYTHONPATH")
        remote = [*(["env", f"PYTHONPATH={path}"] if path else []), *remote]
        ssh = shlex.split(os.environ.get(SSH) or "ssh")
        line = remote if _is_here(slots.host) else [*ssh, *_OPTIONS, slots.host, shlex.join(remote)]
        try:
            host = _Host(slots, line, self._ended.put)
        except OSError as error:
            self._close()
            raise CommandError(f"cannot run {line[0]}: {error.strerror}") from None
        self._hosts.append(host)
        host.tell(told)

    def wait(self) -> int:
        """Return when all have ended."""
        status, close_at, left = 0, math.inf, set(self._hosts)
        while left:
            with contextlib.suppress(queue.Empty):
                host = self._ended.get(timeout=_POLL_SECONDS)
                left.discard(host)
                if host.status and not status:
                    status = host.status
                    if not host.begun:
                        watch.say(f"nothing has begun on {host.slots.host}: {self._why(host)}")
                    # The others have the word from its launcher, but not from one that never ran.
                    close_at = time.monotonic() + (_GRACE_SECONDS if host.begun else 0)
            if time.monotonic() >= close_at:
                close_at = math.inf
                self._close()
            if time.monotonic() >= self._kill_at:
                self._kill_at = math.inf
                watch.say(f"no answer from {', '.join(sorted(host.slots.host for host in left))}: no longer waited for")
                for host in left:
                    host.kill()
        if self._signal is not None:
            return 128 + self._signal
        return status if status >= 0 else 128 - status

    def _why(self, host: _Host) -> str:
        if _is_here(host.slots.host):
            return "see above"
        return f"`ssh {host.slots.host}` must work without a question, and the Python there have tfdp (see above)"

    def _stop(self, number: int, _frame: object) -> None:
        again = self._signal is not None
        self._signal = number
        self._close()
        if again:
            self._kill_at = 0.0  # no more patience

    def _close(self) -> None:
        self._kill_at = min(self._kill_at, time.monotonic() + _KILL_SECONDS)
        for host in self._hosts:
            host.close()


def _is_here(host: str) -> bool:
    """Whether a host is this one: one of its addresses can be listened at."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, number) as tried:
            tried.bind(address)
    except (OSError, UnicodeError):
        return False
    return True
