"""Temporary folders, one for all workers, and temporary files beside files that stay."""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from ..foundation import Inside, call_site, is_imported
from ..job import current
from ..store import apart
from ..transports import Label
from .asking import answer, place_of_question

_beside = Inside()
_waits = itertools.count()


def share_names() -> None:
    """From now on a temporary file that is made in a folder of the script's choice has one name on all workers. One in
    the folder for temporary files is each worker's own, and so is what is in it."""
    with apart():
        tempfile.gettempdir()  # which is looked for once in a process
    original, made = tempfile._get_candidate_names, tempfile._mkstemp_inner  # type: ignore[attr-defined]

    @functools.wraps(original)
    def names() -> Iterator[str]:
        own = original()
        return (_common(own) for _ in itertools.count()) if _beside else own

    @functools.wraps(made)
    def make(folder: Any, *arguments: Any) -> Any:
        """Private, as no public function is what `mkstemp` and `NamedTemporaryFile` both call."""
        if os.path.abspath(os.fsdecode(folder)) == os.path.abspath(tempfile.gettempdir()):
            return made(folder, *arguments)
        with _beside.entered():
            return made(folder, *arguments)

    tempfile._get_candidate_names = names  # type: ignore[attr-defined]
    tempfile._mkstemp_inner = make  # type: ignore[attr-defined]


def _common(names: Iterator[str]) -> str:
    place = place_of_question("tempfile.name", only_by_script=False)
    return next(names) if place is None else answer(place, "tempfile.name", lambda: next(names), ((), {}))


def share_folders(put: Callable[[Any, str, Any], None]) -> None:
    """From now on a temporary folder that the script makes is one, and rank 0 removes a `TemporaryDirectory` when all
    workers are through with it."""
    made, original = tempfile.mkdtemp, tempfile.TemporaryDirectory.cleanup

    @functools.wraps(made)
    def make(*arguments: Any, **options: Any) -> Any:
        place = place_of_question("tempfile.mkdtemp", only_by_script=False, by_packages=False)
        ask = functools.partial(made, *arguments, **options)
        return ask() if place is None else answer(place, "tempfile.mkdtemp", ask, (arguments, options))

    put(tempfile, "mkdtemp", make)

    @functools.wraps(original)
    def cleanup(self: Any) -> None:
        if place_of_question("tempfile.cleanup", only_by_script=False, by_packages=False) is not None:
            _wait_for_all()
        original(self)

    tempfile.TemporaryDirectory.cleanup = cleanup  # type: ignore[method-assign]


def _wait_for_all() -> None:
    job = current()
    if is_imported():
        job.transport.barrier(Label(None, call_site()))
    else:
        job.store.gather(f"temporary/{next(_waits)}", b"")
