"""Who asks, where, and whose answer it is.

Every worker runs the whole script, so that all come to the same questions in the same order. Rank 0 never waits: it
answers, and goes on. Another worker that comes to the same place with the same words takes rank 0's answer, or raises
rank 0's error; with other words (a folder of its own, a temporary file) the question is its own. What rank 0 asks
alone, under `if dp.rank() == 0:` or in `dp.on_root(…)`, it asks at other places, and nobody else looks for it there;
but what it keeps of that (a property that is made once) others ask for later, and get the same.

Asked by the script itself, or by modules of Python that are there to ask, in the main thread: others keep what is a
process's own (the lines of a traceback, caches), and threads have no order.
"""

from __future__ import annotations

import atexit
import functools
import gc
import hashlib
import os
import pickle
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from os import getpid
from types import FrameType
from typing import Any, TypeVar

from ..foundation import is_elsewhere, is_of_script
from ..job import current, is_kept_apart
from ..store import Answer, Given, Taken, apart, is_apart
from .again import again, is_again
from .paths import PATHS
from .threads import warn_of

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")
_PYTHON = sysconfig.get_path("stdlib") + os.sep
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TFDP = os.path.dirname(os.path.dirname(os.path.dirname(_OWN))) + os.sep
_INSTALLED = f"{os.sep}site-packages{os.sep}"
# Of Python's library, those that ask for whoever calls them.
ASKS = (
    *("codecs", "configparser", "contextlib", "filecmp", "genericpath", "glob", "gzip", "io", "logging", "os"),
    *(
        "pathlib",
        "posixpath",
        "random",
        "secrets",
        "shelve",
        "shutil",
        "subprocess",
        "tarfile",
        "tempfile",
        "uuid",
        "zipfile",
    ),
)
_PLAIN = (str, bytes, bool, int, float, type(None))


class _Asking:
    """Of this process; `pid` is another one in a child of it."""

    pid = 0
    is_collecting = False  # whenever Python's collector comes by, what finalizers ask is a rank's own
    given: Given | None = None
    taken: Taken | None = None


_asking = _Asking()


def begin() -> bool:
    """From now on what is asked is rank 0's; False where it is already."""
    job = current()
    if _asking.pid == getpid():
        return False
    if job.topology.rank == 0:
        _asking.given = Given(job.store)
    else:
        _asking.taken = Taken(job.store, job.transport.is_awaited)
    _asking.pid = getpid()
    atexit.register(end)
    gc.callbacks.append(_collects)
    return True


def is_echo(path: Any) -> bool:
    """Whether this is a thread, not the main one, of another rank than 0: what it writes there rank 0's writes, too."""
    if _asking.taken is None or _asking.pid != getpid() or not is_elsewhere() or is_apart() or _asking.is_collecting:
        return False
    if not isinstance(path, PATHS) or is_kept_apart(path):
        return False
    own = os.path.join(os.path.abspath(tempfile.gettempdir()), "")
    return not os.path.abspath(os.fsdecode(path)).startswith(own) and not _is_ours()


def _is_ours() -> bool:
    """Whether it is tfdp that writes, as a proof does what it sees, and not the script."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not is_of_script(frame.f_code.co_filename):
        path = frame.f_code.co_filename
        if path.startswith(_TFDP) and not path.startswith(_OWN):
            return True
        frame = frame.f_back
    return False


def may_not_wait() -> bool:
    """Whether nobody may be waited for: Python's collector is at work, at a moment of its own, or this is the end."""
    return _asking.is_collecting or _asking.pid != getpid()


def _collects(phase: str, _: Any) -> None:
    _asking.is_collecting = phase == "start"


def end() -> None:
    """What handlers ask that run after this one, at the end of the process, is its own."""
    _asking.pid = 0
    if _asking.given is not None:
        _asking.given.end()


def answered(
    function: _F,
    name: str,
    *,
    only_by_script: bool = False,
    by_packages: bool = True,
    whatever_is_said: bool = False,
    changes: bool = False,
) -> _F:
    """A function whose result, or error, is rank 0's.

    only_by_script: not where Python's library calls it. by_packages: also where a package does, of its own accord; the
    names that those make by chance are to differ. whatever_is_said: also where the words differ, as the numbers of open
    files do. changes: it changes files, so that threads of others than rank 0 do not call it.
    """
    owner, _, plain_name = name.rpartition(".")

    @functools.wraps(function)
    def asked(*arguments: Any, **options: Any) -> Any:
        place = place_of_question(name, only_by_script, arguments[0] if arguments else None, by_packages)
        if place is None:
            if changes and ((arguments and is_echo(arguments[0])) or is_again):
                return None
            if _asking.pid == getpid() and is_elsewhere() and not is_apart():
                warn_of(name, arguments, _asker())
            return function(*arguments, **options)
        words = ((), {}) if whatever_is_said else (arguments, options)
        ask = functools.partial(function, *arguments, **options)
        return again(ask, lambda asks: answer(place, name, asks, words))

    # As which it is pickled.
    asked.__module__, asked.__qualname__ = owner, plain_name
    found: _F = asked  # type: ignore[assignment]
    return found


def answer(place: bytes, name: str, ask: Callable[[], Any], words: Any) -> Any:
    """Rank 0's result of `ask`, or this rank's own where the words differ, or rank 0's cannot be sent."""
    said = pickle.dumps((name, _said(words)))
    if _asking.given is not None:
        return _given(_asking.given, place, said, ask)
    if _asking.taken is None:
        return ask()
    with apart():  # a handler of a signal may come in between
        found = _asking.taken.take(place, said)
    if found is not None and found.said == said and found.value is not None:
        value = pickle.loads(found.value)
        if found.is_error:
            raise value
        return value
    with apart():
        return ask()


def begun(place: bytes, name: str, start: Callable[[], _T], words: Any) -> tuple[bool, _T]:
    """Whether it has begun in this process, and what rank 0's, or this one's own, is like."""
    here = []

    def begin() -> _T:
        here.append(True)
        return start()

    found = answer(place, name, begin, words)
    return bool(here), found


def _given(given: Given, place: bytes, said: bytes, ask: Callable[[], Any]) -> Any:
    try:
        with apart():
            value = ask()
    except Exception as error:
        given.put(Answer(bytes(place), said, True, _packed(error)))
        raise
    given.put(Answer(bytes(place), said, False, _packed(value)))
    return value


def _packed(value: Any) -> bytes | None:
    try:
        found = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        if isinstance(value, Exception):
            pickle.loads(found)  # many pickle, and cannot be made again
    except Exception:
        return None
    return found


def _said(words: Any) -> Any:
    """What is compared over the ranks."""
    if isinstance(words, _PLAIN):
        return words
    if isinstance(words, os.PathLike):
        return os.fspath(words)
    if isinstance(words, (list, tuple)):
        return [_said(each) for each in words]
    if isinstance(words, dict):  # `env=` of a command has which rank it is in it
        return [(_said(key), _said(value)) for key, value in words.items() if key != "env"]
    return type(words).__name__


class Place(bytes):
    """Where the script asks; by_library: by an installed package that it calls."""

    by_library = False


def place_of_question(name: str, only_by_script: bool, path: Any = None, by_packages: bool = True) -> Place | None:
    """Where the script asks, the same on all ranks: by the lines of it that lead there, each with the place in it, and
    those of the package that it calls. None where the answer is this process's own, as that of a package is while it is
    imported, and of a `path` where packages keep what each process looks for.

    by_packages: also where a package asks of its own accord.
    """
    if _asking.pid != getpid() or is_apart() or _asking.is_collecting:
        return None
    if is_elsewhere():
        return None
    frame = _asker(("own",) if only_by_script else ("own", "python"))
    kind = None if frame is None else _kind(frame.f_code.co_filename)
    by_library = kind == "installed" and by_packages and not only_by_script
    if frame is not None and kind != "script" and (not by_library or is_kept_apart(path)):
        return None  # without any, a handler that runs at the end
    found, below = hashlib.blake2b(name.encode(), digest_size=16), not by_library
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__":
            return None  # whenever the collector comes by
        kind = _kind(code.co_filename)
        if kind == "import" and not below:
            return None
        below = below or kind == "script"
        if kind == "script" or (kind == "installed" and not below):
            found.update(
                f"{os.path.basename(code.co_filename)}:{code.co_name}:{frame.f_lineno}:{frame.f_lasti};".encode()
            )
        frame = frame.f_back
    if not below:
        return None
    place = Place(found.digest())
    place.by_library = by_library
    return place


def _asker(between: tuple[str, ...] = ("own", "python")) -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _kind(frame.f_code.co_filename) in between:
        frame = frame.f_back
    return frame


@functools.cache
def _kind(path: str) -> str:
    if path.startswith(_OWN):
        return "own"
    if path.startswith("<frozen "):  # as `os` may be
        name = path[len("<frozen ") : -1]
        return "python" if name in ASKS else "import" if name.startswith("importlib") else "library"
    if path.startswith(_PYTHON) and _INSTALLED not in path:
        name = path[len(_PYTHON) :].partition(os.sep)[0].removesuffix(".py")
        return "python" if name in ASKS else "library"
    if _INSTALLED in path and not path.startswith(_TFDP):
        return "installed"
    return "script" if is_of_script(path) else "library"
