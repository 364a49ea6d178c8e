"""What threads of the script ask: they have no order, so that each worker asks for itself."""

from __future__ import annotations

import concurrent.futures.thread
import multiprocessing.pool
import os
import threading
from types import FrameType
from typing import Any

from ..foundation import is_of_script, say_once, site_of
from ..job import current
from ..store import apart
from .paths import PATHS, is_of_this_job

_POOLS = (concurrent.futures.thread.__file__, multiprocessing.pool.__file__, threading.__file__)
_said: set[tuple[str, str]] = set()
_lock = threading.Lock()


def warn_of(name: str, arguments: tuple[Any, ...], asker: FrameType | None) -> None:
    """Say it, once for each place, where this thread, of the script, asks of files that the job is changing meanwhile.

    asker: the innermost frame that is neither ours nor of modules of Python that ask for others.
    """
    if current().topology.rank != 1 or asker is None:
        return
    file, site = asker.f_code.co_filename, site_of(asker)
    is_scripts = file in _POOLS or is_of_script(file)
    if (name, site) in _said or not is_scripts or not arguments or not isinstance(arguments[0], PATHS):
        return
    path = os.fspath(arguments[0])
    with apart():
        if not is_of_this_job(max(map(_changed, (path, os.path.dirname(path) or ".")))):
            return
    with _lock:
        if (name, site) in _said:
            return
        _said.add((name, site))
    where = "a pool of threads" if file in _POOLS else site
    say_once(
        f"{where}: a thread asks {name} of {os.fsdecode(path)!r}, where this job writes: each worker has an answer "
        "of its own, some time apart. Ask in the main thread, where it is rank 0's"
    )


def _changed(path: Any) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
