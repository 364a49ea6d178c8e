"""Work that only one rank may do, or one before the others."""

import os
import pickle
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..foundation import CollectiveMismatchError, Ordinals, TfdpError, call_site
from ..store import apart
from .gone_through import GoneThrough
from .membership import current, known
from .shown import hush, shows_only

_P = ParamSpec("_P")
_R = TypeVar("_R")
_calls = Ordinals()


def on_root(fn: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Run `fn(*args, **kwargs)` on rank 0 only and return its value on every rank.

    Every rank calls it. The others wait as long as rank 0 takes (a download may take an hour; the stall limit does not
    count here), and end at once if rank 0 fails. There must be no collective call inside `fn`.

    Args:
        fn: what to do once: download, unpack, clean a directory. Its value travels by pickle.
        args, kwargs: generators among them are gone through on all ranks, as far as on rank 0.

    Raises:
        Exception: what `fn` raised on rank 0, on every rank (as a `TfdpError` where it cannot be pickled).
        TypeError: the value cannot be pickled; on every rank.
        CollectiveMismatchError: another call of `on_root` was due on this rank.
    """
    job = current()
    if job.topology.size == 1:
        return fn(*args, **kwargs)
    site = call_site()
    key = f"on_root/{_calls.next('on_root')}"
    through = GoneThrough((*args, *kwargs.values()))
    if job.topology.rank > 0:
        # The wait for rank 0's work has no limit; its death ends it all the same.
        found, turns = _received(job.store.fetch(key, threading.TIMEOUT_MAX, publisher=0), site)
        through.follow(turns)
        _count_save(fn)
        return found  # type: ignore[no-any-return]
    try:
        watched = {name: through.watched(each) for name, each in kwargs.items()}
        value = fn(*map(through.watched, args), **watched)
    except Exception as error:
        job.store.publish(key, _packed_error(site, error))
        raise
    try:
        payload = pickle.dumps((site, True, (value, through.turns)), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        refusal = TypeError(
            f"the value that dp.on_root got at {site} is a {type(value).__name__} and cannot be sent to the other "
            f"ranks ({error}): return plain data or NumPy arrays, or None"
        )
        job.store.publish(key, _packed_error(site, refusal))
        raise refusal from error
    job.store.publish(key, payload)
    return value


def root_first(fn: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Run `fn(*args, **kwargs)` on rank 0, then on the others; each rank gets what it has returned there.

    For what leaves a file behind and finds it the next time: `mnist.load_data()` downloads once, and nobody reads what
    is half written. Every rank calls it; there must be no collective call inside `fn`.

    Raises:
        Exception: what `fn` raised on rank 0, on every rank.
        CollectiveMismatchError: another call was due on this rank.
    """
    job = current()
    if job.topology.rank == 0:
        value: list[_R] = []
        with apart():
            on_root(lambda: value.append(fn(*args, **kwargs)))
        return value[0]
    on_root(lambda: None)
    with apart():  # what it asks has another answer now
        return fn(*args, **kwargs)


class _Nothing(tuple[Any, ...]):
    """What other ranks have in place of rank 0's run or callback: it does nothing, and there is nothing in it."""

    __slots__ = ()

    def __getattr__(self, name: str) -> "_Nothing":
        if name.startswith("__"):
            raise AttributeError(name)  # else it would seem to be whatever anybody asks for
        return self

    def __call__(self, *_: Any, **__: Any) -> "_Nothing":
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        pass

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __bool__(self) -> bool:
        return True  # as rank 0's is

    def __enter__(self) -> "_Nothing":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def report(function: Callable[_P, Any], /, *args: _P.args, **kwargs: _P.kwargs) -> Any:
    """Call `function(*args, **kwargs)` on rank 0 only: `dp.report(print, dp.metric_result(accuracy))`.

    The arguments are computed on every rank, as collectives in them must be, and so are the texts that `print` and
    Python's logs make of them, which a stream or a handler of the script's own gets, too; nobody waits for the call.

    Returns:
        On rank 0 what the function returns. On the others an object on which every method does nothing, which can be
        used in a `with` statement and among the callbacks of `dp.fit_callbacks`: `run = dp.report(wandb.init)`.
    """
    if known().topology.rank == 0:
        return function(*args, **kwargs)
    if shows_only(function):
        hush(function, args, kwargs)
    return _Nothing()


def _count_save(fn: Callable[..., Any]) -> None:
    """Count what rank 0 has saved, where a `tf.train.Checkpoint` or a manager of one does."""
    if getattr(fn, "__name__", "") != "save":
        return  # to ask for the counter makes it
    owner = getattr(fn, "__self__", None)
    counter: Any = getattr(getattr(owner, "checkpoint", owner), "save_counter", None)
    if hasattr(counter, "assign_add"):
        counter.assign_add(1)


class Nowhere(str):
    """The null device in place of a path, which it knows."""

    path: Any

    def __new__(cls, path: Any) -> "Nowhere":
        found = super().__new__(cls, os.devnull)
        found.path = path
        return found


def root_path(path: Any) -> Any:
    """The path on rank 0; the null device on the others, which write the same to nowhere.

    Args:
        path: what `open` takes.
    """
    return path if known().topology.rank == 0 else Nowhere(path)


def _packed_error(site: str, error: Exception) -> bytes:
    try:
        payload = pickle.dumps((site, False, error), protocol=pickle.HIGHEST_PROTOCOL)
        # Many exceptions pickle but cannot be made again from what was pickled.
        pickle.loads(payload)
    except Exception:
        said = TfdpError(f"dp.on_root at {site} failed on rank 0: {type(error).__name__}: {error}")
        payload = pickle.dumps((site, False, said), protocol=pickle.HIGHEST_PROTOCOL)
    return payload


def _received(payload: bytes, site: str) -> tuple[Any, list[int]]:
    # What is unpickled was put there by rank 0 of this job: nobody else can write to the store.
    root_site, fine, value = pickle.loads(payload)
    if root_site != site:
        raise CollectiveMismatchError(
            f"dp.on_root at {site} met rank 0's at {root_site}: every rank must make the same calls in the same order"
        )
    if not fine:
        raise value
    found, turns = value
    return found, turns
