"""The way that Python takes through code of the script's own while a call of it is built.

What a look has seen holds for the way that it was taken on. By a flag, a counter or a question about what it is given,
code may take another one later, on which it does with rows what no look has seen; whatever it asks, its instructions
tell, or the numbers that it puts into a graph.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ..foundation import is_generated
from .replaced import is_code_of_library

Codes = dict[CodeType, frozenset[int]]
"""By function, which of its instructions Python has come to, by their places in the code; not how often."""


class Way(NamedTuple):
    """What Python has come to, and what operations it has made of it, numbers that it has put in included."""

    codes: Codes
    operations: Sequence[int]


_CONVERTING = ("<module>", "inner_factory", "outer_factory")  # what AutoGraph's files do once, when they are made


class _Thread(threading.local):
    """The codes that this thread has come to, and where in them, by what tells them apart; None where nobody asks."""

    seen: dict[int, tuple[CodeType, set[int]]] | None = None


_thread = _Thread()


@contextlib.contextmanager
def followed() -> Iterator[Codes]:
    """What this thread comes to inside of code that is no library's; empty until it has."""
    found: Codes = {}
    before, collects = _thread.seen, gc.isenabled()
    gc.disable()  # what it collects, and when, is no part of the way
    seen: dict[int, tuple[CodeType, set[int]]] = {}
    _thread.seen = seen
    try:
        with _watching():
            yield found
    finally:
        _thread.seen = before
        if collects:
            gc.enable()
        for code, places in seen.values():
            found[code] = found.get(code, frozenset()) | places


def _is_of_interest(code: CodeType, names: Any) -> bool:
    if code.co_name in _CONVERTING and is_generated(code.co_filename):
        return False
    return not is_code_of_library(code, names)


# --- before Python 3.12 -----------------------------------------------------------------------------------------------

_library: dict[str, bool] = {}


@contextlib.contextmanager
def _traced() -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(_begins)
    try:
        yield
    finally:
        sys.settrace(before)


def _begins(frame: FrameType, _event: str, _: Any) -> Callable[..., Any] | None:
    code = frame.f_code
    path = code.co_filename
    if _library.get(path):
        return None
    if not _is_of_interest(code, frame.f_globals):
        _library[path] = path[:1] != "<" and not is_generated(path)  # what is made of texts is each time another's
        return None
    seen = _thread.seen
    if seen is None:
        return None
    places = seen.setdefault(id(code), (code, set()))[1]

    def goes(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "opcode":
            places.add(frame.f_lasti)
        return goes

    frame.f_trace_lines, frame.f_trace_opcodes = False, True
    return goes


# --- from Python 3.12 on: for all threads, and for good ---------------------------------------------------------------

_TOOLS = (4, 3)  # what debuggers and profilers leave
_watched: dict[int, CodeType] = {}


@contextlib.contextmanager
def _monitored() -> Iterator[None]:
    _watch()
    yield


@functools.cache
def _watch() -> None:
    monitoring: Any = vars(sys)["monitoring"]
    events = monitoring.events
    tool = next(each for each in _TOOLS if monitoring.get_tool(each) is None)

    def starts(code: CodeType, _: int) -> Any:
        if not _is_of_interest(code, sys._getframe(1).f_globals):
            return monitoring.DISABLE
        if _thread.seen is not None and id(code) not in _watched:
            _watched[id(code)] = code
            monitoring.set_local_events(tool, code, events.INSTRUCTION)
        return None

    def goes(code: CodeType, place: int) -> None:
        seen = _thread.seen
        if seen is not None:
            known = seen.get(id(code))
            if known is None:
                known = seen[id(code)] = code, set()
            known[1].add(place)

    monitoring.use_tool_id(tool, "tfdp")
    monitoring.register_callback(tool, events.PY_START, starts)
    monitoring.register_callback(tool, events.INSTRUCTION, goes)
    monitoring.set_events(tool, events.PY_START)
    atexit.register(monitoring.set_events, tool, 0)  # what runs when modules have been emptied is not followed


_watching = _monitored if hasattr(sys, "monitoring") else _traced
