"""Where in the user's code a collective was called, for messages."""

import os
import sys
import sysconfig
from types import FrameType
from typing import Any

_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # of all of tfdp
_PYTHON = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = f"{os.sep}site-packages{os.sep}"
_FRAMEWORKS = ("tensorflow", "keras", "tf_keras")
# What tf.function compiles a Python function into before it runs it: a file that the user has never seen.
_GENERATED = "__autograph_generated_file"


def call_site() -> str:
    """`file:line` of the innermost frame that is neither ours nor the framework's; "an unknown place" without one.

    Inside a `tf.function` that AutoGraph has compiled it is the line of the script all the same, with the name of the
    function; if TensorFlow does not say which line that is, the one from which the function was called.
    """
    return site_of(sys._getframe(1))


def is_users(path: str) -> bool:
    """Whether a file holds code of the user: not ours, the framework's, Python's own or what AutoGraph makes."""
    return not _is_foreign(path) and _GENERATED not in path


def is_of_script(path: str) -> bool:
    """Whether a file holds code of the script, or of files beside it: the user's, and not of an installed package."""
    return _INSTALLED not in path and is_users(path)


def is_generated(path: str) -> bool:
    """Whether a file is one that AutoGraph makes of code."""
    return _GENERATED in path


def site_of(start: FrameType | None) -> str:
    """`call_site` as seen from a frame."""
    compiled = None
    frame = start
    while frame is not None:
        path = frame.f_code.co_filename
        if _GENERATED in path:
            compiled = compiled or frame
        elif compiled is not None and (written := _written(compiled, frame)):
            return written
        elif not _is_foreign(path):
            inside = f" (in {_plain(compiled.f_code.co_name)})" if compiled else ""
            return f"{path}:{frame.f_lineno}{inside}"
        frame = frame.f_back
    return "an unknown place"


def _written(compiled: FrameType, caller: FrameType) -> str | None:
    """The line of the script behind one that AutoGraph has made, where `caller` is what called the function."""
    if caller.f_code.co_name != "converted_call":
        return None
    # No public function leads from a frame to its line, only from an error after the fact.
    function: Any = caller.f_locals.get("converted_f")
    lines = getattr(function, "ag_source_map", None) or {}
    origin = lines.get((compiled.f_code.co_filename, compiled.f_lineno))
    if origin is None or _is_foreign(origin.loc.filename):  # as of Keras 2's own functions, which it has compiled
        return None
    return f"{origin.loc.filename}:{origin.loc.lineno} (in {_plain(function.__name__)})"


def _plain(name: str) -> str:
    return name.removeprefix("tf__")


def _is_foreign(path: str) -> bool:
    """Whether no user has written a call in that file."""
    return path.startswith(_beginnings()) or (path.startswith(_PYTHON) and _INSTALLED not in path)


def _beginnings() -> tuple[str, ...]:
    files = (getattr(sys.modules.get(name), "__file__", None) for name in _FRAMEWORKS)
    return (_OWN + os.sep, "<frozen", *(os.path.dirname(file) + os.sep for file in files if file))
