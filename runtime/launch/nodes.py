"""A job on several hosts: each has a launcher of its own, which meets the others before it starts its ranks."""

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..agent import ROOT, SHORTEST, Comer, Link, Meeting, Plan, address_of, alone, met
from ..clusters import engines, local
from ..foundation import LaunchEnvironmentError
from . import watch
from .command import CommandError

_ALONE = f"{engines.CHOICE}={engines.NONE} is for a job of this host only"


@dataclass(frozen=True)
class Nodes:
    """What this host knows of the others: their number, its own, where the first one listens, and how long to wait.

    start_seconds: for all hosts to come. link_seconds: for a word of a host that says nothing, before it is lost.
    """

    count: int
    node: int
    root: str
    start_seconds: float = 300.0
    link_seconds: float = 30.0


def of_options(
    count: int | None, node: int | None, root: str | None, start_seconds: float | None, link_seconds: float | None
) -> Nodes | None:
    """What the options of `tfdp run` say, or without any the engine that has started it; None for this host only.

    Raises:
        CommandError: some are given, and others that they need are not.
    """
    given = {"--nnodes": count, "--node-rank": node, "--root": root}
    missing = [name for name, value in given.items() if value is None]
    if count is None or node is None or root is None:
        told = {**given, "--start-timeout": start_seconds, "--link-timeout": link_seconds}
        there = [name for name, value in told.items() if value is not None]
        if there:
            raise CommandError(f"{', '.join(there)} without {', '.join(missing)}: each host of several needs all three")
        return of_environment(os.environ)
    times = {"start_seconds": start_seconds, "link_seconds": link_seconds}
    return Nodes(count, node, root, **{name: value for name, value in times.items() if value is not None})


def of_environment(environ: Mapping[str, str]) -> Nodes | None:
    """What an engine says that has started this launcher on each of several hosts, None where none has.

    Raises:
        CommandError: it has started several on this host, or does not say where the first is.
    """
    try:
        found = engines.recognise(environ)
    except LaunchEnvironmentError as error:
        raise CommandError(f"{error}; {_ALONE}") from None
    if found is None or found.size == 1:
        return None
    if found.local_size > 1:
        raise CommandError(
            f"{found.engine} has started `tfdp run` {found.local_size} times on this host, and each starts -np ranks: "
            f"start one a host (srun --ntasks-per-node=1), or the script itself in its place; {_ALONE}"
        )
    root = environ.get(ROOT) or found.root
    if not root:
        raise CommandError(
            f"{found.engine} has started `tfdp run` on {found.size} hosts: set {ROOT} to host or host:port of the "
            "first, as all reach it"
        )
    watch.say(f"host {found.rank} of {found.size} by {found.engine}; {_ALONE}")
    return Nodes(found.size, found.rank, root)


def meet(nodes: Nodes | None, ranks: int, argv: Sequence[str], environ: Mapping[str, str]) -> tuple[Plan, list[Link]]:
    """The plan of the job that runs `argv`, and the links to the other hosts: of this host alone without `nodes`.

    Raises:
        CommandError: the options, or the secret, are not what they must be.
        TransportError: the hosts do not come together.
    """
    if nodes is None:
        return alone(ranks), []
    if not 0 <= nodes.node < nodes.count:
        raise CommandError(f"--node-rank is {nodes.node}: with --nnodes {nodes.count} it is 0 to {nodes.count - 1}")
    try:
        root = address_of(nodes.root)
    except ValueError as error:
        raise CommandError(f"--root: {error}") from None
    for name, value in (("--start-timeout", nodes.start_seconds), ("--link-timeout", nodes.link_seconds)):
        if not value > 0:
            raise CommandError(f"{name} is {value:g}: a number of seconds greater than 0 is needed")
    secret = environ.get(local.SECRET, "")
    if len(secret) < SHORTEST:
        raise CommandError(
            f"{local.SECRET} {'has ' + str(len(secret)) + ' characters' if secret else 'is not set'}: the hosts of a "
            f"job know each other by it. Set the same on each, of {SHORTEST} characters or more: "
            f"export {local.SECRET}=$(openssl rand -hex 16)"
        )
    meeting = Meeting(
        root, secret.encode(), nodes.count, by_rank=False, limit_seconds=nodes.start_seconds, said=watch.say
    )
    script = os.path.basename(argv[0]) if not argv[0].startswith("-") else " ".join(argv[:2])
    me = Comer(ranks, nodes.node, host=socket.gethostname(), expected=nodes.count, script=script)
    return met(meeting, me, is_root=nodes.node == 0)


def variables(plan: Plan) -> dict[str, str]:
    """What the environment of this host's ranks has besides, where there are other hosts."""
    return {local.ADDRESS: plan.addresses[plan.mine]} if len(plan.ranks) > 1 else {}


def without_secret(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for what is started: nothing of the user's needs the secret."""
    return {name: value for name, value in environ.items() if name != local.SECRET}
