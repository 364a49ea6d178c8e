"""What is started for a rank: the command and its environment. Pure; nothing is started here."""

import os
import sys
from collections.abc import Mapping, Sequence

from ..clusters import local

_TODO = b"# TODO(tfdp):"


class CommandError(Exception):
    """What was asked for cannot be started; the message says why."""


def command(argv: Sequence[str]) -> list[str]:
    """The command line of a rank: a Python script or `-m module` under this Python, anything else as it is.

    Raises:
        CommandError: nothing to run, a script that is not there, or one that `tfdp migrate --partial` left unfinished.
    """
    if not argv:
        raise CommandError("nothing to run: give a script, as in `tfdp run -np 2 train.py`")
    first = argv[0]
    if first in ("-m", "-c"):
        return [sys.executable, "-u", *argv]
    if first.endswith(".py"):
        if not os.path.isfile(first):
            raise CommandError(f"{first}: no such script in {os.getcwd()}")
        if reason := unfinished(first):
            raise CommandError(reason)
        return [sys.executable, "-u", *argv]
    if os.path.isfile(first) and not os.access(first, os.X_OK):
        return [sys.executable, "-u", *argv]
    return list(argv)


def unfinished(script: str) -> str:
    """Where a script is migrated in part, in words: it would train, and train wrongly; empty where it is not."""
    with open(script, "rb") as file:
        places = [number for number, line in enumerate(file, 1) if line.lstrip().startswith(_TODO)]
    if not places:
        return ""
    return (
        f"{script}:{places[0]}: this script is migrated in part: {len(places)} place(s) are marked TODO(tfdp) "
        f"(line {', '.join(map(str, places))}); settle each and remove its comment"
    )


def environment(base: Mapping[str, str], joined: Mapping[str, str], cores: int) -> dict[str, str]:
    """`base` with the job's variables, and with thread counts that share this host's `cores` out where none are set."""
    found = {
        name: value for name, value in base.items() if name not in (*local.NEEDED, local.ADDRESS, local.JOINED)
    } | dict(joined)
    found.setdefault("PYTHONUNBUFFERED", "1")
    # A crash in native code says nothing by itself; with this Python says where it was.
    found.setdefault("PYTHONFAULTHANDLER", "1")
    if int(joined[local.SIZE]) > 1:
        # The order of a set of strings may decide about data (label numbers, file lists): one order on all ranks.
        found.setdefault("PYTHONHASHSEED", str(int(joined[local.SEED]) % 2**32))
        found |= local.shares(cores // int(joined[local.LOCAL_SIZE]), found)
    return found
