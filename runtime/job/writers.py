"""One writer: what a second rank opens for writing, which no guard of the migrated script has kept from it.

Facts know the writers of TensorFlow, Keras, NumPy and others. What they do not know passes through Python's audit
events all the same: `open` in any library that calls Python's, and `sqlite3.connect`.
"""

import functools
import os
import re
import sys
import sysconfig
import tempfile
from types import FrameType
from typing import Any

from ..foundation import is_of_script, say_once, site_of

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DEVICES = ("/dev/", "/proc/", "/sys/")
# Under the home folder: where libraries keep what they fetch, and their settings.
_KEPT = (".cache", ".config", ".keras", ".local", ".matplotlib", ".triton", ".nv")
_OWN_FILE = re.compile(r"-\d+-of-\d+$")  # as dp.rank_path has it
_NO_FILE = ("", ":memory:")


def watch_writers() -> None:
    """From now on say, once for each path, where this process opens a file for writing, or a database.

    Quiet for temporary, cache and settings folders but where the script runs, devices, compiled modules and the files
    of `dp.rank_path`. Not seen: what TensorFlow and HDF5 write themselves.
    """
    quiet = (*_kept_apart(), os.path.join(os.path.abspath(tempfile.gettempdir()), ""))
    seen: set[str] = set()
    here = os.path.join(os.getcwd(), "")

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & _WRITES:
                return
        elif event == "sqlite3.connect":
            path = arguments[0]
        else:
            return
        try:
            _say(path, quiet, here, seen)
        except Exception:  # the script's own call must not fail by being watched
            return

    sys.addaudithook(heard)


@functools.cache
def _kept_apart() -> tuple[str, ...]:
    home = os.path.expanduser("~")
    installed = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    folders = [*installed, *(os.path.join(home, kept) for kept in _KEPT)]
    return (*_DEVICES, *(os.path.join(os.path.abspath(folder), "") for folder in folders))


def is_kept_apart(path: Any) -> bool:
    """Whether it is where packages keep settings and what they fetch, which each process looks for; or a device."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    return os.path.join(os.path.abspath(os.fsdecode(path)), "").startswith(_kept_apart())


def _site() -> str:
    """Where the script is, and not the library that it calls."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_of_script(frame.f_code.co_filename):
        frame = frame.f_back
    return site_of(frame)


def _say(path: Any, quiet: tuple[str, ...], here: str, seen: set[str]) -> None:
    if isinstance(path, int) or path is None or os.fspath(path) in _NO_FILE:
        return
    whole = os.path.abspath(os.fsdecode(path))
    if whole in seen:
        return
    seen.add(whole)
    is_quiet = os.path.join(whole, "").startswith(quiet) and not whole.startswith(here)
    if is_quiet or f"{os.sep}__pycache__{os.sep}" in whole or _OWN_FILE.search(whole):
        return
    site = _site()
    if site == "an unknown place":
        return
    say_once(
        f"{site}: rank 1 opens {whole} for writing, as rank 0 and all others probably do at the same time, and nothing "
        "keeps them apart. Let rank 0 alone do it, dp.on_root(function), or give each rank a file of its own, "
        "dp.rank_path(path)"
    )
