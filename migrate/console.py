"""The edge of the process: interrupts, readers that have gone, and errors nobody expected become exit codes."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Any, NoReturn

import click

from tfdp.migrate.report.streams import say

_ERROR = 2
_BROKEN_PIPE = 128 + signal.SIGPIPE


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
            _die_of_interrupt()
        except Exception:
            say(f"tfdp: internal error; please report this:\n{traceback.format_exc()}")
            raise click.exceptions.Exit(_ERROR) from None


def _never_fail_on_characters() -> None:
    # A file name with undecodable bytes, or a dataset called é under LC_ALL=C, must not end in a UnicodeEncodeError.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _die_of_interrupt() -> NoReturn:
    """End by the signal itself: a shell loop over files stops only for a process that died of SIGINT."""
    say("interrupted; each file is as it was, or migrated as a whole")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
    raise click.exceptions.Exit(128 + signal.SIGINT)  # only when SIGINT is blocked
