"""A host's launcher, told what to run by `tfdp run -H` on standard input."""

import contextlib
import json
import os
import signal
import sys
import threading

from ..clusters.local import SECRET
from . import main
from .nodes import Nodes
from .over_ssh import BEGUN
from .screen import Screen


def _end_with_input() -> None:
    """Ask for the end when whoever has started this is gone, or says so."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def run() -> int:
    """Read what to run, and run it; 2 where nothing is told, or the folder is not there."""
    line = b""
    while not line.endswith(b"\n"):
        got = os.read(0, 2**16)
        if not got:
            return 2
        line += got
    os.write(1, BEGUN)
    told = json.loads(line)
    os.environ.update(told["environ"])
    os.environ[SECRET] = told["secret"]
    try:
        os.chdir(told["folder"])
    except OSError as error:
        print(
            f"tfdp: {os.uname().nodename}: {told['folder']}: {error.strerror}: the script's folder must be the same "
            "on all hosts",
            file=sys.stderr,
        )
        return 2
    threading.Thread(target=_end_with_input, daemon=True).start()
    nodes = Nodes(**told["nodes"]) if told["nodes"] is not None else None
    screen = Screen(**told["screen"])
    return main(told["count"], told["argv"], screen, independent=told["independent"], nodes=lambda: nodes)
