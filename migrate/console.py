"""The edge of the process: interrupts, readers that have gone, and errors nobody expected become exit codes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

import click

from .report.streams import say

_ERROR = 2
_BROKEN_PIPE = 128 + signal.SIGPIPE


class Terminated(BaseException):
    """A signal that ends processes came while there was something to clean up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


@contextlib.contextmanager
def cleaning_up() -> Iterator[None]:
    """Let SIGTERM and SIGHUP leave the `with` blocks inside, as Ctrl-C does, before they end the process."""

    def unwind(number: int, _: FrameType | None) -> NoReturn:
        raise Terminated(number)

    heeded = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    for each in heeded:
        signal.signal(each, unwind)
    try:
        yield
    finally:
        for each in heeded:
            signal.signal(each, signal.SIG_DFL)


class Console(click.Group):
    """A group of commands that ends as the exit codes in DESIGN say, and as a shell expects of signals."""

    def invoke(self, ctx: click.Context) -> Any:
        _never_fail_on_characters()
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            raise click.exceptions.Exit(_BROKEN_PIPE) from None
        except OSError as error:
            say(f"tfdp: error: {error.strerror or error}")
            raise click.exceptions.Exit(_ERROR) from None
        except KeyboardInterrupt:
            files = "; each file is as it was, or migrated as a whole" if ctx.invoked_subcommand == "migrate" else ""
            say(f"interrupted{files}")
            _die_of(signal.SIGINT)
        except Terminated as reason:
            _die_of(reason.signal)
        except Exception:
            say(f"tfdp: internal error; please report this:\n{traceback.format_exc()}")
            raise click.exceptions.Exit(_ERROR) from None


def _never_fail_on_characters() -> None:
    # A file name with undecodable bytes, or a dataset called é under LC_ALL=C, must not end in a UnicodeEncodeError.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _die_of(number: signal.Signals) -> NoReturn:
    """End by the signal itself: a shell loop over files stops only for a process that died of SIGINT."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise click.exceptions.Exit(128 + number)  # only when the signal is blocked
