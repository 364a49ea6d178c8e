"""How the hosts of a job come together: the root listens until all have come, then tells each its place."""

import contextlib
import ipaddress
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version

from ..foundation import Topology, TransportError
from .link import Kind, Link, LinkError, Message, StrangerError, prove

DEFAULT_PORT = 29440  # torchrun has 29400 and 29500
_TRY_SECONDS = 0.25
_ASK_SECONDS = 10.0
_MOST_STRANGERS = 64
_MOST_SAID = 10
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-intel")


def _tensorflow() -> str:
    for name in _TENSORFLOW:
        with contextlib.suppress(PackageNotFoundError):
            return version(name)
    return ""


@dataclass(frozen=True)
class Comer:
    """What a host says of itself: its ranks where an engine has numbered them, else its number `node`; and how many.

    expected, script: how many hosts (or ranks) it waits for, and what it runs, by which jobs are told apart.
    order: a hash of a text in its ranks, by which they go through sets; 0 where the launchers see to that.
    """

    count: int
    node: int = -1
    ranks: tuple[int, ...] = ()
    host: str = ""
    order: int = 0
    expected: int = 0
    script: str = ""
    tfdp: str = field(default_factory=lambda: version("tfdp"))
    tensorflow: str = field(default_factory=_tensorflow)


@dataclass(frozen=True)
class Plan:
    """A job over hosts: the ranks of each, its address as the others reach it, and which of them this one is."""

    job: str
    seed: int
    ranks: tuple[tuple[int, ...], ...]
    addresses: tuple[str, ...]
    hosts: tuple[str, ...]
    mine: int

    @property
    def size(self) -> int:
        """How many ranks the job has."""
        return sum(map(len, self.ranks))

    def topology(self, rank: int) -> Topology:
        """The place of one rank of this host."""
        here = self.ranks[self.mine]
        local = here.index(rank)
        beside = [host for host, ranks in enumerate(self.ranks) if len(ranks) > local]
        return Topology(rank, self.size, local, len(here), beside.index(self.mine), len(beside))


@dataclass(frozen=True)
class Meeting:
    """How to meet: where the root is, what all know, how many ranks or hosts there are, and for how long to wait."""

    root: tuple[str, int]
    secret: bytes
    expected: int
    by_rank: bool
    limit_seconds: float
    said: Callable[[str], None]


def alone(count: int) -> Plan:
    """The plan of a job on this host only."""
    return Plan(secrets.token_hex(16), secrets.randbits(32), (tuple(range(count)),), ("127.0.0.1",), ("this host",), 0)


def listen(root: tuple[str, int]) -> socket.socket:
    """The socket at which the root is reached.

    Raises:
        TransportError: the address is not this host's, or the port is in use.
    """
    host, port = root
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = ipaddress.ip_address(str(address[0]).partition("%")[0])
        if found.is_unspecified:
            raise OSError("the others cannot reach a host by an address of none")
        if found.is_loopback and not _is_literal(host) and host != "localhost":
            address = ("", *address[1:])  # a host's own name leads there on some, and elsewhere for all others
        listener = socket.socket(family, kind, number)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, UnicodeError) as error:  # the second where the name is none
        raise TransportError(
            f"the first host cannot listen at {shown(root)}: {error}. Give an address of its own in --root, and a "
            "port that is free"
        ) from None
    listener.listen(_MOST_STRANGERS)
    return listener


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def met(meeting: Meeting, me: Comer, *, is_root: bool) -> tuple[Plan, list[Link]]:
    """The plan, and the links to the other hosts: from the root to all of them, from each of them to the root.

    Raises:
        TransportError: the hosts do not come together.
    """
    if is_root:
        return gathered(meeting, listen(meeting.root), me)
    plan, link = joined(meeting, me)
    return plan, [link]


def gathered(meeting: Meeting, listener: socket.socket, me: Comer) -> tuple[Plan, list[Link]]:
    """What the root does: wait for all, and tell each the plan. The links are in the order of the other hosts.

    Raises:
        TransportError: not all came in time, or one does not fit; all who came have been told.
    """
    came = _Gathering(meeting, me)
    listener.settimeout(_TRY_SECONDS)
    began = asked = time.monotonic()
    with listener:
        while not came.complete():
            now = time.monotonic()
            if now - began > meeting.limit_seconds:
                came.refuse(f"{came.missing()} did not come within {meeting.limit_seconds:g} s")
            if now - asked > _ASK_SECONDS:
                asked = now
                meeting.said(f"waiting at {shown(meeting.root)} for {came.missing()}")
            with contextlib.suppress(TimeoutError):
                connection, address = listener.accept()
                came.hear(connection, address[0])
    return came.plan()


class _Gathering:
    """Who has come to the root so far."""

    def __init__(self, meeting: Meeting, me: Comer) -> None:
        self._meeting, self._me = meeting, me
        self._lock = threading.Lock()
        self._others: list[tuple[Comer, Link, str]] = []
        self._strangers: dict[str, int] = {}
        self._open: dict[socket.socket, None] = {}
        self._wrong = ""
        self._full = False  # nobody is added any more

    def complete(self) -> bool:
        with self._lock:
            if self._wrong:
                self._refuse(self._wrong)
            for other in [other for other in self._others if other[1].gone]:
                self._meeting.said(f"{other[1].name} is gone again")
                self._others.remove(other)
            every = [self._me, *(comer for comer, *_ in self._others)]
            there = sum(c.count for c in every) if self._meeting.by_rank else len(every)
            self._full = there >= self._meeting.expected
            return self._full

    def missing(self) -> str:
        with self._lock:
            every = [self._me, *(comer for comer, *_ in self._others)]
        if self._meeting.by_rank:
            there = {rank for comer in every for rank in comer.ranks}
            return f"rank(s) {', '.join(str(r) for r in range(self._meeting.expected) if r not in there)}"
        nodes = {comer.node for comer in every}
        return f"host(s) {', '.join(str(n) for n in range(self._meeting.expected) if n not in nodes)}"

    def hear(self, connection: socket.socket, address: str) -> None:
        """Let somebody who has connected say who it is, on a thread: nobody can hold up the others."""
        with self._lock:
            if len(self._open) >= _MOST_STRANGERS:
                oldest = next(iter(self._open))
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread sees the end, and closes it
                del self._open[oldest]
            self._open[connection] = None
        threading.Thread(target=self._hear, args=(connection, address), daemon=True).start()

    def _hear(self, connection: socket.socket, address: str) -> None:
        try:
            prove(connection, self._meeting.secret, listening=True)
            link = Link(connection, address)
            hello = link.receive(_ASK_SECONDS)
            comer = _comer(hello)
        except (LinkError, ValueError, TypeError, KeyError) as error:
            connection.close()
            self._stranger(address, error)
        else:
            link.name = f"{comer.host} ({address})"
            self._take(comer, link, address)
        finally:
            with self._lock:
                self._open.pop(connection, None)

    def _stranger(self, address: str, error: Exception) -> None:
        with self._lock:
            self._strangers[address] = self._strangers.get(address, 0) + 1
            times, kinds = self._strangers[address], len(self._strangers)
        if times == 1 and kinds <= _MOST_SAID:
            self._meeting.said(f"somebody at {address} is not of this job: {error}")

    def _take(self, comer: Comer, link: Link, address: str) -> None:
        foreign = _of_another_job(comer, self._me)
        with self._lock:
            if self._full and not foreign:
                foreign = f"{comer.host} has come too late: the job has begun without it"
            if not foreign:
                self._wrong = self._wrong or self._unfit(comer)
                self._others.append((comer, link, address))
                return
        self._meeting.said(foreign)
        link.send(Message(Kind.REFUSED, payload=foreign.encode()))
        link.close()

    def _unfit(self, comer: Comer) -> str:
        """Why there can be no job with a host that is of it, or empty."""
        others = (self._me, *(other for other, *_ in self._others))
        wrong = next(filter(None, (_unfit(comer, other) for other in others)), "")
        if not wrong and not self._meeting.by_rank and not 0 <= comer.node < self._meeting.expected:
            return f"{comer.host} says that it is host {comer.node}; there are {self._meeting.expected}, from 0 on"
        return wrong

    def refuse(self, reason: str) -> None:
        """Tell all who came that there is no job. Raises TransportError."""
        with self._lock:
            self._refuse(reason)

    def _refuse(self, reason: str) -> None:
        for _, link, _ in self._others:
            link.send(Message(Kind.REFUSED, payload=reason.encode()))
            link.close()
        raise TransportError(reason)

    def plan(self) -> tuple[Plan, list[Link]]:
        by_rank = self._meeting.by_rank
        others = sorted(self._others, key=lambda one: min(one[0].ranks) if by_rank else one[0].node)
        every = [self._me, *(comer for comer, *_ in others)]
        if by_rank:
            ranks = [tuple(sorted(comer.ranks)) for comer in every]
            if sorted(rank for host in ranks for rank in host) != list(range(self._meeting.expected)):
                self.refuse(
                    f"the hosts have the ranks {ranks}, which are not those from 0 to {self._meeting.expected - 1}"
                )
        else:
            starts = [sum(comer.count for comer in every[:host]) for host in range(len(every))]
            ranks = [tuple(range(start, start + comer.count)) for start, comer in zip(starts, every, strict=True)]
        addresses = (self._meeting.root[0], *(address for *_, address in others))
        hosts = tuple(comer.host for comer in every)
        plan = Plan(secrets.token_hex(16), secrets.randbits(32), tuple(ranks), addresses, hosts, 0)
        for number, (_, link, _) in enumerate(others, 1):
            link.send(Message(Kind.PLAN, payload=json.dumps({**asdict(plan), "mine": number}).encode()))
        return plan, [link for _, link, _ in others]


def joined(meeting: Meeting, me: Comer) -> tuple[Plan, Link]:
    """What every other host does: find the root, and hear its plan.

    Raises:
        TransportError: the root is not there, is another one, or has refused.
    """
    connection = _reached(meeting)
    try:
        prove(connection, meeting.secret, listening=False)
        link = Link(connection, f"the first host ({shown(meeting.root)})")
        link.send(Message(Kind.HELLO, payload=json.dumps(asdict(me)).encode()))
        answer = link.receive(meeting.limit_seconds)
    except StrangerError as error:
        connection.close()
        raise TransportError(
            f"what listens at {shown(meeting.root)} is not the first host of this job: {error}"
        ) from None
    except LinkError as error:
        connection.close()
        raise TransportError(str(error)) from None
    if answer.kind is Kind.REFUSED:
        link.close()
        raise TransportError(answer.payload.decode("utf-8", "replace"))
    told = json.loads(answer.payload)
    ranks = tuple(map(tuple, told["ranks"]))
    plan = Plan(told["job"], told["seed"], ranks, tuple(told["addresses"]), tuple(told["hosts"]), told["mine"])
    return plan, link


def _reached(meeting: Meeting) -> socket.socket:
    began = asked = time.monotonic()
    while True:
        try:
            return socket.create_connection(meeting.root, timeout=_ASK_SECONDS)
        except UnicodeError as error:
            raise TransportError(f"{shown(meeting.root)} is no address: {error}") from None
        except OSError as error:
            now = time.monotonic()
            if now - began > meeting.limit_seconds:
                raise TransportError(
                    f"the first host did not answer at {shown(meeting.root)} within {meeting.limit_seconds:g} s "
                    f"({error}): is it started, with the same --root, and does a firewall let this port through?"
                ) from None
            if now - asked > _ASK_SECONDS:
                asked = now
                meeting.said(f"waiting for the first host at {shown(meeting.root)} ({error})")
        time.sleep(_TRY_SECONDS)


def _comer(hello: Message) -> Comer:
    if hello.kind is not Kind.HELLO:
        raise ValueError("it did not say who it is")
    told: Mapping[str, object] = json.loads(hello.payload)
    ranks, count, node = told["ranks"], told["count"], told["node"]
    if not isinstance(ranks, list) or not isinstance(count, int) or not isinstance(node, int) or count < 1:
        raise TypeError("it says something else than a host does")
    versions = str(told["tfdp"]), str(told["tensorflow"])
    job = int(str(told["expected"])), str(told["script"])
    return Comer(count, node, tuple(map(int, ranks)), str(told["host"]), int(str(told["order"])), *job, *versions)


def _of_another_job(comer: Comer, me: Comer) -> str:
    """Why the two, who know one secret, are not of one job, or empty."""
    if comer.expected != me.expected:
        return f"{comer.host} waits for {comer.expected} in all, and {me.host} for {me.expected}: they are of two jobs"
    if comer.script != me.script:
        return f"{comer.host} runs {comer.script}, and {me.host} {me.script}: they are of two jobs"
    return ""


def _unfit(comer: Comer, other: Comer) -> str:
    """Why the two are not of one job, or empty."""
    for name in ("tfdp", "tensorflow"):
        one, two = getattr(comer, name), getattr(other, name)
        if one != two:
            return f"{comer.host} has {name} {one or '(none)'}, {other.host} has {two or '(none)'}: install the same"
    if comer.order != other.order:
        return (
            f"{comer.host} and {other.host} go through a set of texts in different orders: start all ranks with the "
            "same PYTHONHASHSEED, and the same Python"
        )
    if comer.node >= 0 and comer.node == other.node:
        return f"{comer.host} and {other.host} both say that they are host {comer.node}"
    if shared := set(comer.ranks) & set(other.ranks):
        return f"{comer.host} and {other.host} both say that they have rank {min(shared)}"
    return ""


def shown(address: Sequence[object]) -> str:
    """`host:port`, with brackets where the host is an IPv6 address."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def address_of(text: str, port: int = DEFAULT_PORT) -> tuple[str, int]:
    """Host and port of `host`, `host:port` or `[IPv6]:port`.

    Raises:
        ValueError: the text is none of these.
    """
    host, separator, number = text.rpartition(":")
    if text.startswith("[") and text.endswith("]"):
        host, separator, number = text, "", ""
    elif not separator or (":" in host and not host.startswith("[")):
        host, number = text, ""
    host = host.strip("[]")
    if not host or (number and not number.isdigit()) or (separator and not number and text.endswith(":")):
        raise ValueError(f"{text!r} is no address: host, host:port or [IPv6]:port")
    found = int(number) if number else port
    if not 0 < found < 2**16:
        raise ValueError(f"{text!r}: {found} is no port")
    return host, found
