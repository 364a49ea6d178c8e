"""Where in the user's code a collective was called, for messages."""

import os
import sys

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FRAMEWORKS = ("tensorflow", "keras", "tf_keras")
# What tf.function compiles a Python function into before it runs it: a file that the user has never seen.
_GENERATED = "__autograph_generated_file"


def call_site() -> str:
    """`file:line` of the innermost frame that is neither ours nor the framework's; "an unknown place" without one."""
    foreign = _foreign()
    frame = sys._getframe(1)
    function = ""
    while frame is not None:
        path = frame.f_code.co_filename
        if _GENERATED in path:
            function = function or frame.f_code.co_name.removeprefix("tf__")
        elif not path.startswith(foreign):
            inside = f" (in {function})" if function else ""
            return f"{path}:{frame.f_lineno}{inside}"
        frame = frame.f_back  # type: ignore[assignment]
    return "an unknown place"


def _foreign() -> tuple[str, ...]:
    """How the paths of files begin in which no user has written a call."""
    files = (getattr(sys.modules.get(name), "__file__", None) for name in _FRAMEWORKS)
    return (_OWN + os.sep, "<frozen", *(os.path.dirname(file) + os.sep for file in files if file))
