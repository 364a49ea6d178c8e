"""Commands that the script starts: rank 0 starts them, and all workers read what they say."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..foundation import TfdpError, call_site, is_of_script
from .asking import answer, answered, begun, place_of_question

_STREAMS = ("stdin", "stdout", "stderr")
_start, _popen = subprocess.Popen.__init__, os.popen


def _asked(name: str, ask: Callable[..., Any] | None, *arguments: Any, **options: Any) -> Any:
    """ask: None where rank 0 has what is asked, and this process has not."""

    def elsewhere(*_: Any, **__: Any) -> Any:
        raise TfdpError(
            f"{name} at {call_site()} is of a command that rank 0 has started, and is asked for where rank 0 does not: "
            "in another thread, or with other arguments"
        )

    place, function = place_of_question(name, only_by_script=False), ask or elsewhere
    if place is None:
        return function(*arguments, **options)
    return answer(place, name, functools.partial(function, *arguments, **options), (arguments, options))


class Stream:
    """A pipe of rank 0's: what is read from it, all workers get."""

    def __init__(self, name: str, real: Any) -> None:
        self._name, self._real = name, real

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = None if self._real is None else getattr(self._real, name)
        if self._real is not None and not callable(found):
            return found
        return functools.partial(_asked, f"{self._name}.{name}", found)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Popen(subprocess.Popen[Any]):
    """A command that runs once: in rank 0."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        def start() -> tuple[Any, ...]:
            _start(self, *arguments, **options)
            return self.args, self.pid, [getattr(self, name) is not None for name in _STREAMS]

        name, self._is_here, self._child_created = "subprocess.Popen", True, False
        place = place_of_question(name, only_by_script=False)
        if place is None:
            start()
            return
        self._is_here, (self.args, self.pid, piped) = begun(place, name, start, (arguments, options))
        if not self._is_here:
            self.returncode = None
        for name, is_piped in zip(_STREAMS, piped, strict=True):
            setattr(self, name, Stream(f"Popen.{name}", getattr(self, name, None)) if is_piped else None)

    def _common(self, name: str, *arguments: Any, **options: Any) -> Any:
        def ask(*arguments: Any, **options: Any) -> Any:
            return getattr(super(Popen, self), name)(*arguments, **options), self.returncode

        value, self.returncode = _asked(f"Popen.{name}", ask if self._is_here else None, *arguments, **options)
        return value

    def poll(self) -> Any:
        """As for a process of one's own."""
        return self._common("poll")

    def wait(self, timeout: float | None = None) -> Any:
        """As for a process of one's own."""
        return self._common("wait", timeout=timeout)

    def communicate(self, input: Any = None, timeout: float | None = None) -> Any:
        """As for a process of one's own."""
        return self._common("communicate", input=input, timeout=timeout)

    def send_signal(self, sig: int) -> None:
        """As for a process of one's own."""
        self._common("send_signal", sig)

    def terminate(self) -> None:
        """As for a process of one's own."""
        self._common("terminate")

    def kill(self) -> None:
        """As for a process of one's own."""
        self._common("kill")


def popen(*arguments: Any, **options: Any) -> Any:
    """`os.popen`."""
    place, real = place_of_question("os.popen", only_by_script=False), []
    if place is None:
        return _popen(*arguments, **options)
    begun(place, "os.popen", lambda: real.append(_popen(*arguments, **options)), (arguments, options))
    return Stream("os.popen", real[0] if real else None)


def share_number(put: Callable[[Any, str, Any], None]) -> None:
    """`os.getpid` is rank 0's for the script, and a signal to that number goes to each worker itself."""
    number, kill = os.getpid, os.kill
    common = answered(number, "os.getpid", only_by_script=True)
    told: set[int] = set()

    @functools.wraps(number)
    def getpid() -> int:
        if not is_of_script(sys._getframe(1).f_code.co_filename):
            return number()
        found: int = common()
        told.add(found)
        return found

    @functools.wraps(kill)
    def signalled(pid: int, sign: int) -> None:
        if pid in told:
            kill(number(), sign)
        else:
            shared(pid, sign)

    shared = answered(kill, "os.kill")
    put(os, "getpid", getpid)
    put(os, "kill", signalled)
