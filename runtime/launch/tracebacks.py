"""Python's tracebacks in what a rank has written: where one stands, its cause in one line, libraries' frames folded.

Lines are bytes without their ends. Nothing here is started or written.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..foundation import gist
from . import startup

_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_HEADER = b"Traceback (most recent call last):"
_GROUP = b"  + Exception Group Traceback (most recent call last):"
_OF_GROUP = b"  | "  # in front of what is the group's own
_IN_GROUP = re.compile(rb" +[|+](?:[ -]|$)")
_MARGIN = re.compile(rb"^ +\| ")
_CRASH = re.compile(rb"Fatal Python error: .+")
_STACK = re.compile(rb"(?:Current thread|Thread) 0x[0-9a-f]+.* \(most recent call first\):")
# Python's own traceback has a comma after the line, faulthandler's has none; of a syntax error no function is named.
_FRAME = re.compile(rb'  File "(?P<path>[^"]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?')
_CHAINED = (
    b"During handling of the above exception, another exception occurred:",
    b"The above exception was the direct cause of the following exception:",
)
_RAISED = re.compile(rb"[A-Za-z_][\w.<>]*(?:: .*)?")
_NODE = re.compile(rb"\t \[\[.*\]\].*")
_MODULE = re.compile(rb"^(?:\w+\.)+(?=\w)")
_INSTALLED = re.compile(r"/(?:site|dist)-packages/([\w.-]+)")
_PYTHON = re.compile(r"/lib(?:64)?/python3\.\d+/|^<frozen ")
_NEVER_USERS = ("tensorflow", "keras", "tf_keras", "absl", "tfdp", "python")
_SHORTEST = 12  # of a line that is surely of one error
_TEXT = 600  # of a line that says why; those of the runtime end with the next step


@dataclass(frozen=True)
class Ending:
    """The end of a rank's stderr: the traceback that it ends with, and what stands before and after it."""

    before: list[bytes]
    traceback: list[bytes]
    after: list[bytes]


@dataclass(frozen=True)
class Frame:
    """One place of a traceback. `library` is the package that it is in, "" for the user's own code."""

    path: str
    line: int
    function: str
    library: str

    @property
    def place(self) -> str:
        """As messages give it."""
        inside = "" if self.function in ("", "<module>") else f", in {self.function}"
        return f"{self.path}:{self.line}{inside}"


def may_begin(line: bytes) -> bool:
    """Whether a rank's last words may begin with this line."""
    if line in (_HEADER, _GROUP) or _CRASH.fullmatch(line) or startup.complaint(line) is not None:
        return True
    frame = _FRAME.fullmatch(line)  # of a syntax error
    return frame is not None and frame["function"] is None


def ending(lines: Sequence[bytes], told: Sequence[bytes] = ()) -> Ending:
    """Find the traceback that `lines` end with; one that other lines follow was printed, and no rank ended by it.

    told: the exception's last part, kind and message, as the rank itself has told it, when it has: that says exactly
    where a message of several lines ends, and lines may follow. Copies of it that TensorFlow's C++ code has logged are
    left out. Without it the message is one line.
    """
    outer = _outer(lines)
    for at in range(len(lines) - len(told), 0, -1) if told else ():
        if outer[at : at + len(told)] == list(told):
            begin, end = _begin(lines, at), at + len(told)
            if lines[at] != outer[at]:
                end = _end_of_group(lines, end)
            before, after = (_without_copies(part, told) for part in (lines[:begin], lines[end:]))
            return Ending(before, list(lines[begin:end]), after)
    at = 0
    while at < len(lines):
        end = _end(lines, at)
        if end and not any(lines[end:]):
            return Ending(list(lines[:at]), list(lines[at:end]), list(lines[end:]))
        at = end or at + 1
    return Ending(list(lines), [], [])


def folded(lines: Sequence[bytes]) -> list[bytes]:
    """A traceback in which each run of libraries' frames is one line."""
    found: list[bytes] = []
    run: list[Frame] = []
    library = _libraries(lines)

    def fold() -> None:
        if run:
            names = ", ".join(dict.fromkeys(frame.library for frame in run))
            found.append(f"  … {len(run)} frame{'s' if len(run) > 1 else ''} in {names} …".encode())
            run.clear()

    inside = False
    for line in _one_thread(lines):
        frame = _frame(line)
        if frame is not None:
            inside = library(frame)
        elif not (inside and (line.startswith(b"  ") or not line.strip())):
            inside = False
        if not inside:
            fold()
            found.append(line)
        elif frame is not None:
            run.append(frame)
    fold()
    return found


def raised(lines: Sequence[bytes]) -> str:
    """Kind and message of the exception of a traceback, in one line; of one that a library has wrapped, its own."""
    said = _outer(last(lines)[1:])
    begin = next((at for at, line in enumerate(said) if line and not line.startswith(b" ")), None)
    if begin is None:
        return ""
    text = b"\n".join([_MODULE.sub(b"", said[begin]), *said[begin + 1 :]])
    return gist(text.decode("utf-8", "replace"))[:_TEXT]


def last(lines: Sequence[bytes]) -> Sequence[bytes]:
    """Of a chain of tracebacks the last one."""
    return lines[max((at for at in range(len(lines)) if _is_top(lines, at)), default=0) :]


def names(lines: Sequence[bytes], kinds: Sequence[str]) -> bool:
    """Whether a traceback names an exception of one of these kinds, if only in a message, as where C++ replaces one."""
    wanted = _any_of(kinds)
    said = (_MARGIN.sub(b"", line) for line in lines)
    return any(wanted.search(line) for line in said if not line.startswith(b" "))


def without_logged(lines: Sequence[bytes], kinds: Sequence[str]) -> list[bytes]:
    """Without what TensorFlow's C++ code has logged of exceptions of these kinds, with Python's traceback of each."""
    wanted = _any_of(kinds)
    found: list[bytes] = []
    at = 0
    while at < len(lines):
        said = startup.complaint(lines[at])
        end = _end_of_logged(lines, at, said) if said is not None and wanted.search(said) else 0
        found += lines[at : at + 1] if not end else []
        at = end or at + 1
    return found


def place(lines: Sequence[bytes]) -> Frame | None:
    """The innermost frame of the user's, in a traceback or in the stack of a crash."""
    lines = _outer(lines)
    library = _libraries(lines)
    frames = [frame for frame in map(_frame, _one_thread(lines)) if frame is not None]
    own = [frame for frame in frames if not library(frame)]
    if not own:
        return None
    return own[0] if any(map(_STACK.fullmatch, lines)) else own[-1]


def _any_of(kinds: Sequence[str]) -> "re.Pattern[bytes]":
    return re.compile(rb"\b(?:" + "|".join(kinds).encode() + rb")\b")


def _is_top(lines: Sequence[bytes], at: int) -> bool:
    """A header, and not one in the message of another traceback: there an empty line is in front of each frame."""
    if lines[at] == _GROUP:
        return True
    return lines[at] == _HEADER and at + 1 < len(lines) and _FRAME.fullmatch(lines[at + 1]) is not None


def _end(lines: Sequence[bytes], at: int) -> int:
    """Where the traceback that begins at `at` ends; 0 when none does."""
    line = lines[at]
    if _CRASH.fullmatch(line):
        at += 1
        while at < len(lines) and (not lines[at] or lines[at][:2] == b"  " or _STACK.fullmatch(lines[at])):
            at += 1
        more = at < len(lines) and lines[at].startswith(b"Extension modules: ")
        return at + 1 if more else at
    at = _end_of_group(lines, at) if line == _GROUP else _end_of_one(lines, at)
    chained = at and at + 3 < len(lines) and lines[at] == lines[at + 2] == b"" and lines[at + 1] in _CHAINED
    return (_end(lines, at + 3) if chained else 0) or at


def _end_of_group(lines: Sequence[bytes], at: int) -> int:
    while at < len(lines) and _IN_GROUP.match(lines[at]):
        at += 1
    return at


def _outer(lines: Sequence[bytes]) -> list[bytes]:
    """Where lines are those of a group of exceptions, what they say of the group itself."""
    return [line.removeprefix(_OF_GROUP) for line in lines]


def _end_of_one(lines: Sequence[bytes], at: int) -> int:
    frame = _FRAME.fullmatch(lines[at])
    if lines[at] != _HEADER and (frame is None or frame["function"] is not None):
        return 0
    at += 1
    while at < len(lines) and lines[at].startswith(b"  "):
        at += 1
    if at + 1 < len(lines) and not lines[at]:  # under a frame of whose line Python can find nothing
        at += 1
    if at == len(lines) or not _RAISED.fullmatch(lines[at]):
        return 0
    return at + 1


def _begin(lines: Sequence[bytes], said: int) -> int:
    """Where the traceback begins whose exception is named at `said`, with those that led to it."""
    header = next((at for at in range(said - 1, -1, -1) if _is_top(lines, at)), None)
    if header is None:
        return said
    chained = header >= 3 and lines[header - 1] == lines[header - 3] == b"" and lines[header - 2] in _CHAINED
    return _begin(lines, header - 3) if chained else header


def _without_copies(lines: Sequence[bytes], told: Sequence[bytes]) -> list[bytes]:
    """Without what TensorFlow's C++ code has logged of the same error before Python raised it."""
    found: list[bytes] = []
    at = 0
    while at < len(lines):
        end = _end_of_copy(lines, at, told)
        found += lines[at : at + 1] if not end else []
        at = end or at + 1
    return found


def _end_of_copy(lines: Sequence[bytes], at: int, told: Sequence[bytes]) -> int:
    said = startup.complaint(lines[at])
    first = next((n for n, line in enumerate(told) if said and len(line) >= _SHORTEST and said.endswith(line)), None)
    if first is None:
        return 0
    for line in told[first + 1 :]:
        if at + 1 == len(lines) or lines[at + 1] != line:
            break
        at += 1
    while at + 1 < len(lines) and _NODE.fullmatch(lines[at + 1]):
        at += 1
    return at + 1


def _end_of_logged(lines: Sequence[bytes], at: int, said: bytes) -> int:
    """Where a logged error ends that begins at `at`: with the exception that it names, if a traceback follows."""
    at += 1
    if at + 1 < len(lines) and lines[at] == _HEADER and not _is_top(lines, at):
        end = at + 1
        while end < len(lines) and (not lines[end] or lines[end].startswith(b"  ")):
            end += 1
        if end < len(lines) and said.endswith(_MODULE.sub(b"", lines[end])):
            at = end + 1
            while at < len(lines) and not lines[at]:
                at += 1
    while at < len(lines) and _NODE.fullmatch(lines[at]):
        at += 1
    return at


def _one_thread(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Of a crash only the stack of the thread that crashed."""
    if not any(map(_STACK.fullmatch, lines)):
        yield from lines
        return
    stacks = [at for at, line in enumerate(lines) if _STACK.fullmatch(line)]
    current = next((at for at in stacks if lines[at].startswith(b"Current")), stacks[0])
    yield from (line for line in lines[: stacks[0]] if line)
    yield lines[current]
    for line in lines[current + 1 :]:
        if not line.startswith(b"  "):
            break
        yield line


def _frame(line: bytes) -> Frame | None:
    found = _FRAME.fullmatch(line)
    if found is None:
        return None
    path = os.fsdecode(found["path"])
    function = (found["function"] or b"").decode("utf-8", "replace")
    return Frame(path, int(found["line"]), function, _library(path))


def _library(path: str) -> str:
    if "__autograph_generated_file" in path:
        return "tensorflow"
    if path.startswith(_OWN):
        return "tfdp"
    if found := _INSTALLED.search(path):
        return found[1]
    return "python" if _PYTHON.search(path) else ""


def _libraries(lines: Sequence[bytes]) -> "_Libraries":
    return _Libraries([frame for frame in map(_frame, lines) if frame is not None])


class _Libraries:
    """Which frames of a traceback are no concern of the user's.

    A project that is installed lies among the libraries: where no frame is the user's otherwise, theirs may be.
    """

    def __init__(self, frames: Sequence[Frame]) -> None:
        self._any_users = any(not frame.library for frame in frames)

    def __call__(self, frame: Frame) -> bool:
        return bool(frame.library) if self._any_users else frame.library in _NEVER_USERS
