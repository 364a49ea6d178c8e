"""The exception with which a script ends: its place in the script, and the traceback that its author knows."""

import os
import re
import sysconfig
import time
import traceback
from pathlib import Path
from types import TracebackType

from ..record import Crash, one_line
from .frames import Lines

_LIBRARIES = tuple(
    os.path.join(folder, "") for folder in {*sysconfig.get_paths().values(), str(Path(__file__).parents[3])}
)
_INSTALLED = ("/site-packages/", "/dist-packages/", "__autograph_generated_file")
_MOST_LINES = 8  # of an error's own text


def crash(error: BaseException, script: str, root: str, lines: Lines) -> Crash:
    """What is to be told of `error`. script: the path under which the text ran. root: the tree that shows the files."""
    from ....runtime import JobAborted  # not earlier: instruments come before the runtime

    message = str(error).replace(root, "")
    own = _from_the_script(error.__traceback__, script)
    told = traceback.TracebackException(type(error), error, own)
    said = [*told.format_exception_only()]
    frames = [frame for frame in told.stack if _of_the_user(frame.filename.removeprefix(root))]
    short = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    whole = "".join(said).rstrip("\n")
    short.append(whole if whole.count("\n") < _MOST_LINES else one_line(type(error).__name__, message))
    line, function = _defined(message, script) or _running(own, script, lines)
    return Crash(
        kind=type(error).__name__,
        message=message,
        line=line,
        function="" if function == "<module>" else function,
        follows=isinstance(error, JobAborted) or "JobAborted: " in message,
        moment=time.monotonic(),
        traceback="".join(told.format()).replace(root, "").rstrip("\n"),
        short="".join(short).replace(root, ""),
    )


def _from_the_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """Without the frames that call the script; all of them where the script's own are not there."""
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename != script:
        found = found.tb_next
    return found or trace


def _of_the_user(path: str) -> bool:
    return not path.startswith((*_LIBRARIES, "<")) and not any(name in path for name in _INSTALLED)


def _defined(message: str, script: str) -> tuple[int, str] | None:
    """The innermost line that TensorFlow names in its own message, of code that runs in a graph."""
    found = re.findall(rf'File "{re.escape(script)}", line (\d+), in (\S+)', message)
    return (int(found[-1][0]), found[-1][1]) if found else None


def _running(trace: TracebackType | None, script: str, lines: Lines) -> tuple[int, str]:
    line, function = 0, ""
    while trace is not None:
        path, number = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        if origin := number if path == script else lines.origin(path, number):
            line, function = origin, trace.tb_frame.f_code.co_name.removeprefix("tf__")
        trace = trace.tb_next
    return line, function
