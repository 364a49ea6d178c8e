"""What a script shows, and rank 0 alone is to show: elsewhere it is computed and formatted, and goes nowhere."""

from __future__ import annotations

import functools
import io
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..foundation import Inside

_hushed = Inside()


class Shown:
    """The standard output or error of a rank that may be told to hush, for a while or for good. All else is the
    stream's own."""

    is_hushed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._stream)

    def write(self, text: str) -> int:
        """As the stream does."""
        if (_hushed or self.is_hushed) and isinstance(text, str):
            return len(text)
        return self._stream.write(text)  # type: ignore[no-any-return]

    def writelines(self, lines: Any) -> None:
        """As the stream does."""
        for line in lines:
            self.write(line)


def _is_shown_or_kept(stream: Any) -> bool:
    """Whether what is written to a stream is seen, or stays in a file."""
    return isinstance(stream, (Shown, io.TextIOWrapper)) and not getattr(stream, "keeps_nothing", False)


@functools.cache
def watch_shown() -> None:
    """From now on this rank's standard streams, and handlers of logs, can be told to hush."""
    known: dict[int, Shown] = {}
    for name in ("__stdout__", "__stderr__", "stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            setattr(sys, name, known.setdefault(id(stream), Shown(stream)))
    emit = logging.StreamHandler.emit

    def hushed(self: Any, record: logging.LogRecord) -> None:
        if _hushed and _is_shown_or_kept(self.stream):
            self.format(record)
        else:
            emit(self, record)

    logging.StreamHandler.emit = hushed  # type: ignore[method-assign]


def hush_for_good() -> None:
    """From now on nothing of what is written to the standard output is seen, nor what is logged."""
    watch_shown()
    for stream in (sys.stdout, sys.__stdout__):
        if isinstance(stream, Shown):
            stream.is_hushed = True
    emit = logging.StreamHandler.emit

    def hushed(self: Any, record: logging.LogRecord) -> None:
        with _hushed.entered():
            emit(self, record)

    logging.StreamHandler.emit = hushed  # type: ignore[method-assign]


def shows_only(function: Callable[..., Any]) -> bool:
    """Whether all that a function does besides showing is the script's own doing: `print`, Python's logs, and the
    `summary` of a Keras model."""
    owner = getattr(function, "__self__", None)
    if getattr(function, "__name__", "") == "summary":
        return hasattr(owner, "summary") and hasattr(owner, "layers")
    return function is print or isinstance(owner, logging.Logger) or _logs(function)


def _logs(function: Callable[..., Any]) -> bool:
    return getattr(function, "__module__", None) == logging.__name__


def hush(function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Call it with nothing shown, and nothing written to files that are open: what the script has put in their place,
    and texts that it keeps, get what they would."""
    watch_shown()
    if function is print and _is_shown_or_kept(options.get("file") or sys.stdout):
        options = {**options, "file": io.StringIO()}  # `__str__` may do anything
    with _hushed.entered():
        function(*arguments, **options)
