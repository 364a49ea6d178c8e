"""The two streams: stdout carries data and nothing else, stderr what is said to a person."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from typing import TextIO

import click


def coloured(stream: TextIO | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to write colours to a stream: only to a terminal, unless NO_COLOR or FORCE_COLOR say otherwise."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return environ.get("TERM") != "dumb" and stream is not None and stream.isatty()


def say(text: str) -> None:
    """One message to a person. `text` may hold colours; they are dropped where none are wanted. Raises OSError."""
    try:
        click.echo(text, err=True, color=coloured(sys.stderr))
    except OSError:
        _discard(2)
        raise


def give(data: str | bytes) -> None:
    """Data to stdout, flushed, exactly as it is. Raises OSError, BrokenPipeError when the reader has gone."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    try:
        click.echo(data, nl=False, color=coloured(sys.stdout))
    except OSError:
        _discard(1)
        raise


def _discard(descriptor: int) -> None:
    # What is still buffered would fail again when the interpreter flushes at exit, and spoil the exit code.
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), descriptor)


def printable(text: str) -> str:
    """`text` with control characters and undecodable bytes escaped: a file's name must not steer the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
