"""`--max-restarts`: a job that has failed is started again, with the same seed, while it comes further each time."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Mapping

from ..restarts import FOLDER, Furthest, begin_again, furthest
from . import watch
from .command import CommandError


def refuse(most: int, np: int, *, several_hosts: bool, keeps_logs: bool = False) -> None:
    """Raises CommandError where this job cannot be started again as it was."""
    if most and several_hosts:
        raise CommandError("--max-restarts is for the jobs of one host: leave it out, or -H, --nnodes and the like")
    if most and keeps_logs:
        raise CommandError("--log-dir keeps the logs of one start: leave it or --max-restarts out")
    if most and np == 1:
        raise CommandError(
            "--max-restarts needs -np 2 or more: one process is left as it is, and draws other numbers each time"
        )


def started_again(
    most: int, environ: Mapping[str, str], launch: Callable[[Mapping[str, str]], tuple[int, bool]]
) -> int:
    """Start a job, and up to `most` times again; the exit status of the last time.

    launch: given its environment, starts it and waits for its end: the exit status, and whether a rank has failed.
    """
    try:
        here = pathlib.Path(tempfile.mkdtemp(prefix=".tfdp-restarts-", dir=os.getcwd()))
    except OSError as error:
        raise CommandError(f"--max-restarts keeps what a fit goes on from in {os.getcwd()}: {error}") from None
    try:
        before = None
        for number in range(most + 1):
            begin_again(here)
            status, failed = launch({**environ, FOLDER: str(here)})
            reached = furthest(here)
            if not failed:
                break
            if number == most:
                watch.say(f"it has been started again {most} time(s), which is all that --max-restarts allows")
            elif reached is None:
                watch.say(
                    "it is not started again: no epoch of a fit and no tf.train.Checkpoint was kept to go on from"
                )
                break
            elif reached == before:
                watch.say("it is not started again: it has come no further than the last time")
                break
            else:
                watch.say(f"all ranks are started again ({number + 1} of {most}), and go on after {_words(reached)}")
                before = reached
    finally:
        shutil.rmtree(here, ignore_errors=True)
    return status


def _words(reached: Furthest) -> str:
    if reached.fit is None or reached.loop:
        return f"the script's last checkpoint ({reached.loop} in all)"
    fit, epoch, over = reached.fit
    return f"fit {fit + 1}" if over else f"epoch {epoch + 1} of fit {fit + 1}"
