"""`tfdp run`: one process per rank on this host, alone or as one of several.

Each rank inherits two file descriptors: the shared memory, and its end of a socketpair to the job's store in this
process. No port is opened and no file is made, and with the last process all of it is gone. The ranks' output comes
out line by line with the rank in front (`screen` says what is left out of it); standard input is empty.

The first rank that fails is the cause: the others learn it, in a collective or a fetch, and are stopped. Nothing
survives the launcher, even one that is killed: the kernel ends the ranks with it, and a guardian process ends what
they have started in their process groups.
"""

import math
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..agent import Hosts, Link, Plan, StoreServer
from ..clusters import local
from ..foundation import TransportError, allowed_ports
from ..job import DEFAULT_STALL_SECONDS, REPORT, STALL
from ..transports import DEFAULT_BYTES, FINISHED, Arena
from . import children, restarts, unjoined, watch
from .at_start import draws_hook
from .children import Child, Guardian
from .command import CommandError, command, environment, unfinished
from .logs import Logs
from .memory import OutOfMemory
from .nodes import Nodes, meet, of_options, variables, without_secret
from .output import Output, Shown
from .over_ssh import Cluster, cluster_of
from .over_ssh import run as over_ssh
from .report import Failure, Report, listed
from .screen import TF_LOG, TRACEBACKS, Screen
from .unjoined import Unjoined, independent_copies
from .watch import Signals, Watch

_USAGE_ERROR = 2
_CANNOT_RUN = 126
_NOT_FOUND = 127
_STORE_BYTES = 4 * 2**30
_GRACE_SECONDS = 10.0

__all__ = [
    "TF_LOG",
    "TRACEBACKS",
    "Cluster",
    "CommandError",
    "Nodes",
    "Screen",
    "cluster_of",
    "independent_copies",
    "main",
    "of_options",
    "over_ssh",
    "unfinished",
]


def main(
    np: int,
    argv: Sequence[str],
    screen: Screen | None = None,
    *,
    independent: bool = False,
    nodes: Callable[[], Nodes | None] = lambda: None,
    max_restarts: int = 0,
) -> int:
    """Run a script or command on `np` processes and return the exit status for this process.

    That is 0, or the status of the rank that failed first (128 + N for signal N), or 128 + N when signal N ended the
    job; 2 when there is nothing to run, 126 when the command cannot be run, 127 when there is none.

    Args:
        np: how many ranks, at least 1.
        argv: a Python script (a file that ends in `.py` or is not executable), `-m module`, or any command; and its
            arguments.
        screen: what of the ranks' output is shown and kept.
        nodes: gives what is known where this host is one of several, each with a launcher of its own and `np` ranks.
        independent: let ranks train though they have not joined the job, each a model of its own.
        max_restarts: how often all ranks are started again where one has failed, and the job has come further.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("tfdp.runtime.launch.main handles signals and needs the main thread")
    try:
        if np < 1:
            raise CommandError(f"-np is {np}: at least one process is needed")
        line = command(argv)
        allowed_ports(os.environ)  # is what it should be
        others = nodes()
        keeps_logs = screen is not None and screen.log_dir is not None
        restarts.refuse(max_restarts, np, several_hosts=others is not None, keeps_logs=keeps_logs)
        plan, links = meet(others, np, argv, os.environ)

        def launch(environ: Mapping[str, str]) -> tuple[int, bool]:
            # Another job each time, of which only what follows from the seed is the same.
            again = replace(plan, job=secrets.token_hex(16)) if max_restarts else plan
            job = _Launch(again, links, line, environ, screen or Screen(), independent, others)
            return job.run(), job.has_failed

        return restarts.started_again(max_restarts, os.environ, launch) if max_restarts else launch(os.environ)[0]
    except (CommandError, TransportError) as error:
        watch.say(str(error))
        return _USAGE_ERROR


class _Launch:
    """One job from the start of its ranks to its exit status."""

    def __init__(  # noqa: PLR0917 - what `main` was given, and who has come
        self,
        plan: Plan,
        links: Sequence[Link],
        line: Sequence[str],
        environ: Mapping[str, str],
        screen: Screen,
        independent: bool,
        nodes: Nodes | None,
    ) -> None:
        self._line = line
        self._plan = plan
        self._here = plan.ranks[plan.mine]
        size = self._size = plan.size
        self._environ = {**without_secret(environ), **({REPORT: "1"} if screen.verbose else {})}
        self._grace = _number(environ, "TFDP_GRACE_SECONDS", _GRACE_SECONDS)
        store_bytes = int(_number(environ, "TFDP_STORE_BYTES", _STORE_BYTES))
        self._began = time.monotonic()
        memory_bytes = int(_number(environ, "TFDP_SHM_BYTES", DEFAULT_BYTES))
        self._memory_fd = Arena.create(size, memory_bytes, len(self._here) if len(plan.ranks) > 1 else None)
        self._arena = Arena(self._memory_fd, size)
        self._stall = _number(environ, STALL, DEFAULT_STALL_SECONDS)
        self._shown = _shown(screen, self._here, environ)
        self._echoes: set[int] = set()
        self._hosts = Hosts(plan, links, self, self._arena, nodes.link_seconds) if nodes is not None else None
        self._store = StoreServer(
            size,
            plan.job,
            store_bytes,
            failed=self._told,
            spoken=self._spoke,
            echoes=self._echoes.add if self._shown.folds_echoes else None,
            ranks=self._here,
            ways=self._hosts.ways() if self._hosts is not None else None,
        )
        self._elsewhere = ""
        self._unjoined = None if independent or size == 1 else Unjoined()
        self._told_by: int | None = None
        self._told_reason = ""
        self._spoken: dict[int, bytes] = {}
        self._spoken_at: dict[int, float] = {}
        self._memory = OutOfMemory()
        self._hint = ""
        self._wake: Callable[[], None] = lambda: None
        self._ranks: list[Child] = []
        self.has_failed = False  # by a rank, and neither by a signal to the job nor before it has begun

    def run(self) -> int:
        """Start, watch, report."""
        guardian = Guardian()
        with Signals() as signals:
            self._wake = signals.poke
            watching = Watch(
                self._ranks,
                guardian,
                self._grace,
                self._stall,
                failed=self._failed,
                finished=self._finished,
                ending=self._ending,
                through=self._unjoined.through if self._unjoined is not None else {},
            )
            try:
                try:
                    self._start(guardian)
                except OSError as error:
                    watch.say(f"cannot run {self._line[0]}: {error.strerror}")
                    return _NOT_FOUND if isinstance(error, FileNotFoundError) else _CANNOT_RUN
                output = Output(
                    self._ranks,
                    _streams(),
                    self._shown,
                    echoes=self._echoes,
                    broken=watching.unread_by(signals),
                    ending=lambda: self._is_ending(watching),
                )
                watching.run(signals)
                self._part(watching, signals)
            finally:
                children.end(self._ranks, guardian)
                guardian.dismiss()
                if self._unjoined is not None:
                    self._unjoined.close()
                self._store.close()
                os.close(self._memory_fd)
        output.finish()
        return self._conclude(watching, output)

    def _start(self, guardian: Guardian) -> None:
        cores = len(os.sched_getaffinity(0))
        for rank in self._here:
            told = self._unjoined.variables(rank) if self._unjoined is not None else {}
            told |= draws_hook.variable(self._plan.seed) if told else {}
            base = unjoined.environment(self._environ, told)
            store_fd = self._store.ends[rank].fileno()
            joined = local.variables(
                self._plan.topology(rank), self._plan.seed, self._plan.job, store_fd=store_fd, memory_fd=self._memory_fd
            )
            environ = environment(base, joined, cores) | variables(self._plan)
            self._ranks.append(children.start(rank, self._line, environ, [store_fd, self._memory_fd]))
            guardian.watch(self._ranks[-1].pid)
        self._store.start()
        if self._hosts is not None:
            self._hosts.serve(self._store)

    def _part(self, watching: Watch, signals: Signals) -> None:
        """The ranks of this host have ended: let the other hosts know, and serve them for as long as they need it."""
        hosts = self._hosts
        if hosts is None:
            return

        def well() -> bool:
            number = next((number for number in signals.wait(0) if number in watch.ENDING), None)
            if number is not None:
                watching.stopped_by, watching.unread = number, True  # it is no order to finish that ranks have taken
                hosts.failed(-1, f"{signal.Signals(number).name} on {self._plan.hosts[self._plan.mine]}")
            return not (self._elsewhere or self._is_ending(watching))

        hosts.close(well)

    def _failed(self, reason: str) -> None:
        self._hint = self._memory.hint()  # before the others end, and free theirs
        self._arena.abort(self._size, reason)
        self._store.abort(reason)
        if self._hosts is not None:
            self._hosts.failed(-1, f"{reason} on {self._plan.hosts[self._plan.mine]}")

    def told(self, rank: int, reason: str) -> None:
        """Another host says that the job has failed there."""
        if self._arena.aborted() is None:
            self._elsewhere = reason
        self._arena.abort(self._size, reason)
        self._store.abort(reason)
        if self._told_by is None:
            self._told_by, self._told_reason = rank, reason
        self._wake()

    def said(self, line: str) -> None:
        """Another host's link has something for the user."""
        watch.say(line)

    def _told(self, rank: int, reason: str) -> None:
        """A rank says that it has failed; its process may take long to end."""
        self._arena.abort(rank, reason)
        self._told_by, self._told_reason = rank, reason
        if self._hosts is not None:
            self._hosts.failed(rank, f"{reason} on {self._plan.hosts[self._plan.mine]}")
        self._wake()

    def _ending(self) -> int | None:
        """The rank that has told first that it has failed, or has not joined and was about to train."""
        if self._unjoined is not None:
            self._unjoined.read()
            if self._told_by is None and self._unjoined.ranks:
                self._told_by = self._unjoined.ranks[0]
        return self._told_by

    def _spoke(self, rank: int, exception: bytes) -> None:
        self._spoken[rank], self._spoken_at[rank] = exception, time.monotonic()
        self._wake()

    def _is_ending(self, watching: Watch) -> bool:
        return any(known is not None for known in (watching.first, watching.stopped_by, self._told_by))

    def _finished(self, rank: int) -> None:
        self._arena.set_state(rank, FINISHED)
        self._store.finished(rank)

    def _conclude(self, watching: Watch, output: Output) -> int:
        said = self._unjoined.said if self._unjoined is not None else {}
        report = Report(output, self._ranks, {**said, **self._spoken})
        if self._shown.logs is not None and self._shown.logs.failed:
            watch.say(self._shown.logs.failed)
        if watching.stopped_by is not None:
            return self._interrupted(watching, watching.stopped_by, report)
        if self._elsewhere:
            report.interrupted()
            watch.say(f"the job was ended by another host: {self._elsewhere}")
            return 1
        if self._unjoined is not None and self._unjoined.first is not None:
            report.all_is_well()
            watch.say(independent_copies(self._size, *self._unjoined.first, self._unjoined.ranks))
            if watching.first is None or watching.first.rank in self._unjoined.ranks:
                return 1
        cause = self._cause(watching.first)
        if cause is None or cause.status is None:
            report.all_is_well()
            if self._unjoined is not None and (suspicion := self._unjoined.suspicion()) is not None:
                watch.say(suspicion)
            return 0
        self.has_failed = True
        status = self._own_status(cause)
        told = self._told_reason.removeprefix(f"rank {cause.rank} ended with ") if self._told_by == cause.rank else ""
        # One that has told its end may have taken long to come to it.
        at = min(self._spoken_at.get(cause.rank, math.inf), cause.over_at or math.inf)
        for line in report.failed(Failure(cause, status, watching.stopped, told, at - self._began, self._hint)):
            watch.say(line)
        return children.exit_status(status)

    def _interrupted(self, watching: Watch, number: int, report: Report) -> int:
        seconds = time.monotonic() - self._began
        name = signal.Signals(number).name
        report.interrupted()
        if watching.first is None and not watching.unread:
            watch.say(f"all ranks finished in order on {name}, after {seconds:.1f} s")
            return 0  # every rank has taken the signal as a request to finish, and has
        killed = f"; {listed(watching.killed)} did not end and had to be killed" if watching.killed else ""
        watch.say(f"stopped by {name} after {seconds:.1f} s{killed}")
        return 128 + number

    def _own_status(self, cause: Child) -> int:
        """What Python would have ended with, where an exception was told and we had to end the process."""
        assert cause.status is not None
        told = self._told_by == cause.rank or cause.rank in self._spoken
        return 1 if told and cause.status in (-signal.SIGTERM, -signal.SIGKILL) else cause.status

    def _cause(self, first: Child | None) -> Child | None:
        """The rank to blame: one that broke off a collective by itself may take longer to end than those it stopped."""
        writer = self._arena.aborted_by()
        blamed = next((child for child in self._ranks if child.rank == writer), None)
        return blamed if first is not None and blamed is not None and blamed.status else first


def _shown(screen: Screen, ranks: Sequence[int], environ: Mapping[str, str]) -> Shown:
    loud = screen.tf_log or ("all" if environ.get("TF_CPP_MIN_LOG_LEVEL") == "0" else "quiet")
    logs = Logs(screen.log_dir, ranks) if screen.log_dir is not None else None
    full = screen.traceback == "full"
    return Shown(startup_lines=loud == "all", last_words=full, folds_echoes=not (full or screen.verbose), logs=logs)


def _streams() -> tuple[int, int]:
    """Where our own output goes; a caller may have put something without a file descriptor in its place."""
    found = []
    for stream, default in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
            found.append(stream.fileno())
        except (OSError, ValueError):
            found.append(default)
    return found[0], found[1]


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not value > 0:
        raise CommandError(f"{name} is {text!r}: a number greater than 0 is needed")
    return value
