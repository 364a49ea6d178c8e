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
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from . import watch
from .command import CommandError
from .nodes import Nodes
from .screen import Screen

SSH = "TFDP_SSH"
_OPTIONS = ("-o", "BatchMode=yes", "-T")
_HERE = ("localhost", "127.0.0.1", "::1")
_PORTS = (20_000, 29_000)
_CANNOT_CONNECT = 255
_NOT_STARTED = (2, 126, 127, _CANNOT_CONNECT)
_GRACE_SECONDS = 15.0
_POLL_SECONDS = 0.2
# What every host's ranks get of this environment, besides what `-x` names.
_FORWARDED = ("PYTHONPATH", "TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES")
_OURS = "TFDP_"
# Not by `-m`, which would import from the folder it stands in what the user has there.
_LAUNCHER = (
    "import sys; sys.path[:] = filter(None, sys.path); from tfdp.runtime.launch.remote import run; sys.exit(run())"
)
# What begins with a dash would be an option of ssh.
_HOST = re.compile(r"(?P<host>\[[^\]\s]+\]|[^\s:\[\]-][^\s:\[\]]*)(?::|\s+slots\s*=\s*)(?P<count>\d+)")


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
    """The hosts of `-H a:4,b:4`, or of a file with `a slots=4` or `a:4` a line; of their slots as many as `np` says.

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
    if found is None or int(found["count"]) < 1:
        raise CommandError(f"{text!r} is no host with its number of ranks: host:4, or `host slots=4` in a file")
    return Slots(found["host"].strip("[]"), int(found["count"]))


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
    first = cluster.hosts[0].host
    if first in _HERE and cluster.root is None and not all(_is_here(each.host) for each in cluster.hosts):
        raise CommandError(f"the first host is {first}, which others cannot reach: name it as they do, or add --root")
    port = secrets.choice(range(*_PORTS))
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


class _Started:
    """The hosts' launchers, as this process has started them."""

    def __init__(self) -> None:
        self._hosts: list[tuple[Slots, subprocess.Popen[bytes]]] = []
        self._signal: int | None = None
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
            # A session of its own: Ctrl-C is for this process, which tells the hosts.
            process = subprocess.Popen(line, stdin=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            self._stop(signal.SIGTERM, None)
            raise CommandError(f"cannot run {line[0]}: {error.strerror}") from None
        self._hosts.append((slots, process))
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, and says why
            process.stdin.write(told.encode() + b"\n")
            process.stdin.flush()

    def wait(self) -> int:
        """Return when all have ended."""
        ended: queue.SimpleQueue[tuple[Slots, int]] = queue.SimpleQueue()
        for slots, process in self._hosts:
            threading.Thread(target=lambda s=slots, p=process: ended.put((s, p.wait())), daemon=True).start()
        status, close_at = 0, math.inf
        left = len(self._hosts)
        while left:
            with contextlib.suppress(queue.Empty):
                slots, found = ended.get(timeout=_POLL_SECONDS)
                left -= 1
                if found == _CANNOT_CONNECT and not status and not _is_here(slots.host):
                    watch.say(f"no way to {slots.host}: ssh {slots.host} must work without a question (see above)")
                if found and not status:
                    # The others have the word from its launcher, but not from one that never ran.
                    status = found
                    close_at = time.monotonic() + (0 if found in _NOT_STARTED else _GRACE_SECONDS)
            if time.monotonic() >= close_at:
                self._close()
        if self._signal is not None:
            return 128 + self._signal
        return status if status >= 0 else 128 - status

    def _stop(self, number: int, _frame: object) -> None:
        self._signal = number
        self._close()

    def _close(self) -> None:
        for _, process in self._hosts:
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()


def _is_here(host: str) -> bool:
    """Whether a host is this one: one of its addresses can be listened at."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, number) as tried:
            tried.bind(address)
    except (OSError, UnicodeError):
        return False
    return True
