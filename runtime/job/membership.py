"""The job this process belongs to: who is in it, how to reach the others, and the seed they have in common."""

import contextlib
import importlib
import os
import pickle
import random
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import NamedTuple

from .. import transports
from ..clusters import engines, handout, local
from ..clusters.found import Found
from ..foundation import (
    SOLO,
    LaunchEnvironmentError,
    NotInitializedError,
    TfdpError,
    Topology,
    is_imported,
    when_imported,
)
from ..store import SocketStore, SoloStore, Store, end_without_launcher, speak_at_the_end
from ..transports import Place, Transport
from .again import begin_alike
from .lineage import claim, in_multiprocessing, refuse_child
from .shown import hush_for_good
from .writers import watch_writers

STALL = "TFDP_STALL_SECONDS"
REPORT = "TFDP_REPORT"  # set where rank 0 is to say at its end what sharded calls have divided
STANDS_FOR = "TFDP_STANDS_FOR"  # set in the one process of a proof whose batches are those of so many workers
DEFAULT_STALL_SECONDS = 600.0
_DRAWS = "draws"


class Options(NamedTuple):
    """What `dp.init` was called with; as_written: the script is another system's, and seeds and shards by itself."""

    same_start: bool = True
    row_check: bool = True
    shard_calls: bool = False
    batch_norm: str = "global"
    as_written: bool = False


@dataclass(frozen=True)
class Job:
    """A running job. `seed` (0 to 2**32 - 1) is random per job and the same on all ranks."""

    topology: Topology
    store: Store
    transport: Transport
    seed: int


class Known(NamedTuple):
    """What is known of a job without a word from its other ranks."""

    topology: Topology
    seed: int


class _Process:
    """What `init` has done in this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.job: Job | None = None
        self.pid = 0
        self.options = Options()
        self.closed = False


_process = _Process()


def join(options: Options, hook: Callable[[], None]) -> None:
    """What `dp.init` does; `hook` changes what TensorFlow does in a job of several, once that is joined."""
    with _process.lock:
        if _process.job is not None and _process.pid == os.getpid():
            for name, value in _process.options._asdict().items():
                if getattr(options, name) != value:
                    raise TfdpError(f"dp.init() has run with {name}={value}; it cannot change afterwards")
            return
        if _process.closed:
            raise TfdpError("dp.init() after dp.shutdown(): a process joins its job once. Remove the shutdown")
        forked_from = _process.pid if _process.job is not None else 0
        by_engine = False
        if not local.present(os.environ) and (found := engines.recognise(os.environ)) is not None and found.size > 1:
            _begin(found, forked_from, alike=not options.as_written)
            by_engine = True
        job = _join(os.environ, forked_from)
        _process.job, _process.pid, _process.options = job, os.getpid(), options
        _train_together()
        if job.topology.size > 1:
            if options.shard_calls and job.topology.rank > 0:
                _let_rank_0_speak(job, by_engine=by_engine)
            if not options.as_written:
                _draw_alike(job)
            if job.topology.rank == 1:  # it speaks for all that are not rank 0
                watch_writers()
            when_imported(lambda: _changed_by(hook))


def _let_rank_0_speak(job: Job, *, by_engine: bool) -> None:
    """What all ranks write comes to the screen once: the launcher sees to that, or where an engine has started the
    ranks, this process."""
    if by_engine:
        hush_for_good()
    elif isinstance(job.store, SocketStore):
        job.store.echoes()  # before the launcher answers what comes next


def shutdown() -> None:
    """Leave the job: no tfdp call may follow. The others go on, as long as they make no collective call."""
    with _process.lock:
        if _process.job is not None:
            _process.job.transport.close()
            # A job of one holds nothing that could not be joined again.
            _process.closed = _process.job.topology.size > 1
        _process.job = None


def end_badly(reason: str) -> None:
    """End this process, which has come to its end by itself, as one that has failed; and so the job."""
    job = current()
    if isinstance(job.store, SocketStore):
        job.store.fail(f"rank {job.topology.rank} ended: {reason}")
    print(f"tfdp: {reason}", file=sys.stderr)
    sys.stdout.flush()
    end_without_launcher()


def is_initialized() -> bool:
    """Whether `init` has run in this process, and `shutdown` has not."""
    return _process.job is not None and _process.pid == os.getpid()


def shards_calls() -> bool:
    """Whether every worker runs the whole script and its own rows of model calls (`dp.init(shard_calls=True)`)."""
    return is_initialized() and _process.options.shard_calls


def runs_as_written() -> bool:
    """Whether the script is one that another system distributes: it seeds, shards and starts its ranks itself."""
    return is_initialized() and _process.options.as_written


def normalises_locally() -> bool:
    """Whether BatchNormalization in divided calls has the moments of a worker's own rows."""
    return is_initialized() and _process.options.batch_norm == "local"


def widened_by() -> int:
    """How many workers' batches a step covers: N, also in the one process of a proof that stands for N of them."""
    size = current().topology.size
    return size if size > 1 else max(1, int(os.environ.get(STANDS_FOR, "1")))


def current() -> Job:
    """The job.

    Raises:
        NotInitializedError: `init` has not run, or ran in the process that this one was forked from.
    """
    job = _process.job
    if job is None and in_multiprocessing():
        raise NotInitializedError(
            f"this process ({os.getpid()}) was started by multiprocessing; what the ranks do together works only in "
            "the rank's own process"
        )
    if job is None:
        raise NotInitializedError("tfdp is not initialised: call dp.init() at the top of the script, after the imports")
    if _process.pid != os.getpid():
        raise NotInitializedError(
            f"this process ({os.getpid()}) was forked from rank {job.topology.rank} (process {_process.pid}); what "
            "the ranks do together works only in the rank's own process"
        )
    return job


def known() -> Known:
    """What this process knows of the job, or, as a child, of that of the process that has started it.

    Raises:
        NotInitializedError: `init` has not run, and the process is no child of a rank.
    """
    job = _process.job
    if job is None and in_multiprocessing():
        if not local.present(os.environ):
            return Known(SOLO, 0)
        return Known(local.topology(os.environ), local.number(os.environ, local.SEED))
    job = job or current()
    return Known(job.topology, job.seed)


def _join(environ: Mapping[str, str], forked_from: int) -> Job:
    if not local.present(environ):
        alone = Place(SOLO, SoloStore())
        return Job(SOLO, alone.store, transports.connect(transports.choose(SOLO, environ), alone), _fresh())
    topology = local.topology(environ)
    seed, stall = local.number(environ, local.SEED), _stall_seconds(environ)
    name = transports.choose(topology, environ)
    if topology.size == 1:
        alone = Place(topology, SoloStore())
        return Job(topology, alone.store, transports.connect(name, alone), seed)
    refuse_child(environ, forked_from)
    memory_fd, store_fd = local.number(environ, local.MEMORY_FD), local.number(environ, local.STORE_FD)
    claim(memory_fd, topology.rank)
    store = SocketStore(store_fd, topology.rank, environ[local.JOB], stall, _unserved)
    speak_at_the_end(store, topology.rank)
    os.set_inheritable(memory_fd, False)
    place = Place(topology, store, memory_fd, stall, environ.get(local.ADDRESS, "127.0.0.1"))

    def connect() -> Transport:
        transport = transports.connect(name, place)
        claim(memory_fd, topology.rank)  # a transport that was tried and not taken has given it back
        return transport

    os.environ[local.JOINED] = str(os.getpid())
    return Job(topology, store, connect() if is_imported() else transports.later(connect), seed)


def _unserved() -> None:
    """Whoever serves this host's ranks is gone, and so is the job."""
    with contextlib.suppress(OSError, ValueError):
        print("tfdp: what serves the ranks of this host has ended; this rank ends, too", file=sys.stderr)
    end_without_launcher()


def _begin(found: Found, forked_from: int, *, alike: bool) -> None:
    """Give a rank that an engine has started what `tfdp run` gives to its own; with `alike` the same beginning, too."""
    refuse_child({**os.environ, local.RANK: str(found.rank)}, forked_from)
    if alike:
        begin_alike(found, os.environ)
    given = handout.joined(found, _stall_seconds(os.environ), version("tfdp"))
    os.environ.update(local.shares(local.cores_of_one(found.local_size), os.environ))
    os.environ.update(given)
    os.environ.pop(local.SECRET, None)  # nothing of the script needs it


def _train_together() -> None:
    """What this process and those that it starts train from here on is no work of a process that forgot to join."""
    if os.environ.pop(local.UNJOINED, None) is not None and (hook := sys.modules.get(local.TRAINING_HOOK)) is not None:
        hook.remove()


def _changed_by(hook: Callable[[], None]) -> None:
    try:
        hook()
    except BaseException:
        # Whoever catches this and goes on must not do so with ranks that start differently.
        _process.job, _process.closed = None, True
        raise


def _fresh() -> int:
    return int.from_bytes(os.urandom(4), "little")


def _draw_alike(job: Job) -> None:
    """Go on with rank 0's state of Python's and NumPy's generators, which is what the script has seeded, if it has."""
    with contextlib.suppress(ImportError):  # it comes with TensorFlow
        importlib.import_module("numpy.random")
    numpy = sys.modules.get("numpy.random")
    if job.topology.rank == 0:
        state = numpy.get_state() if numpy is not None else None
        job.store.publish(_DRAWS, pickle.dumps((random.getstate(), state)))
        return
    # What is unpickled was put there by rank 0 of this job: nobody else can write to the store.
    of_python, of_numpy = pickle.loads(job.store.fetch(_DRAWS, publisher=0))
    random.setstate(of_python)
    if numpy is not None and of_numpy is not None:
        numpy.set_state(of_numpy)


def _stall_seconds(environ: Mapping[str, str]) -> float:
    text = environ.get(STALL, "")
    try:
        value = float(text) if text else DEFAULT_STALL_SECONDS
    except ValueError:
        value = -1.0
    if not value > 0:
        raise LaunchEnvironmentError(f"{STALL} is {text!r}: a number of seconds greater than 0 is needed")
    return value


def rank() -> int:
    """This process's number in the job, 0 to `size() - 1`."""
    return known().topology.rank


def size() -> int:
    """How many processes the job has."""
    return known().topology.size


def local_rank() -> int:
    """This process's number on its host."""
    return known().topology.local_rank


def local_size() -> int:
    """How many processes of the job are on this host."""
    return known().topology.local_size


def cross_rank() -> int:
    """The number of this host among those that have a process of this local rank."""
    return known().topology.cross_rank


def cross_size() -> int:
    """How many hosts have a process of this local rank."""
    return known().topology.cross_size
