"""The driver's side: the function goes to the processes by cloudpickle, what each gives comes back in a file."""

from __future__ import annotations

import collections
import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..clusters import local
from ..foundation import TfdpError
from ..job import is_initialized, size

PATH, CALL, RESULT, ERROR = "path", "call", "result-{}", "error-{}"
# Without the working directory in front of the path, where a file may have the name of any module.
_SAFE = "import sys; sys.path[:] = filter(None, sys.path); "
_LAUNCH = f"{_SAFE}import runpy; runpy.run_module('tfdp.runtime.launch', run_name='__main__')"
_CHILD = f"{_SAFE}from tfdp.runtime.runner.child import main; main()"
_VERBOSITY = ("all", "log_callback_only")
_LAST_LINES = 30
_GRACE_SECONDS = 15.0


class WorkerError(TfdpError):
    """What a worker raised, or how it ended, with its rank and traceback; the exception itself is its cause."""

    def __init__(self, message: str, rank: int | None = None) -> None:
        super().__init__(message)
        self.rank = rank


class Runner:
    """Runs a function on `np` processes of this machine, new ones each time, and waits for them.

        value = Runner(np=4).run(main, epochs=3)

    The driver stays one process. In a process of a job that runs already, `run(f)` is `f()`.
    """

    def __init__(self, *, np: int, driver_log_verbosity: str = "all") -> None:
        """Name and arguments are HorovodRunner's.

        Args:
            np: how many processes; -n is n on the driver's machine, where all of them are here.
            driver_log_verbosity: "all" shows what the processes say, by rank; "log_callback_only" shows nothing of it,
                but the last lines of a run that fails.

        Raises:
            TypeError: `np` is no integer.
            ValueError: `np` is 0, or another word.
        """
        if isinstance(np, bool) or not isinstance(np, int):
            raise TypeError(f"Runner(np={np!r}): a number of processes is needed")
        if np == 0:
            raise ValueError("Runner(np=0): at least one process is needed")
        if driver_log_verbosity not in _VERBOSITY:
            raise ValueError(f"driver_log_verbosity is {driver_log_verbosity!r}: it is {' or '.join(_VERBOSITY)}")
        self.num_processor = abs(np)
        self._shows = driver_log_verbosity == "all"

    def run(self, main: Callable[..., Any], **kwargs: Any) -> Any:
        """Call `main(**kwargs)` on each process and return what rank 0's gives.

        `main` calls `init` of the runtime (or of `tfdp.runtime.horovod`) itself. It is pickled with what it refers to:
        of modules that can be imported the name, of a notebook's or script's own the code.

        Raises:
            WorkerError: a worker raised, or ended otherwise than by returning; the first one that did.
            TypeError: `main` cannot be called, or cannot be pickled with its arguments.
        """
        return run_on_all(main, (), kwargs, self.num_processor, shows=self._shows, every=False)[0]


def run_on_all(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    np: int,
    *,
    shows: bool = True,
    every: bool = True,
) -> list[Any]:
    """What the function gives on each of `np` new processes, by rank; without `every` that of rank 0 and None for the
    others. Raises as `Runner.run` does.
    """
    if not callable(function):
        raise TypeError(f"{function!r} cannot be called: a function is needed")
    if local.present(os.environ) or (is_initialized() and size() > 1):
        return [function(*args, **kwargs)]
    with tempfile.TemporaryDirectory(prefix="tfdp-run-") as name:
        folder = Path(name)
        (folder / PATH).write_bytes(pickle.dumps((list(map(str, sys.path)), every)))
        (folder / CALL).write_bytes(_pickled(function, args, kwargs))
        code, last = _started(folder, np, shows)
        _raise_what_failed(folder, np, code, last)
        return [pickle.loads((folder / RESULT.format(rank)).read_bytes()) for rank in range(np)]


def _pickled(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    try:
        import cloudpickle
    except ImportError as error:
        raise TfdpError("functions are sent by cloudpickle, which is not installed: pip install cloudpickle") from error
    try:
        call: bytes = cloudpickle.dumps((function, tuple(args), dict(kwargs)))
    except Exception as error:
        raise TypeError(
            f"{getattr(function, '__name__', function)!r} cannot be sent to other processes: {error}. Make models, "
            "datasets and the like inside of it"
        ) from error
    return call


def _started(folder: Path, np: int, shows: bool) -> tuple[int, list[str]]:
    """Run the processes; their exit status, and the last lines that they said."""
    child = ["-c", _CHILD, str(folder)]
    command = [sys.executable, "-u", "-c", _LAUNCH, "-np", str(np), "--", *child]
    # Of the driver's path only what has the runtime: files elsewhere may have the names of any modules.
    path = os.pathsep.join(filter(None, (str(Path(__file__).absolute().parents[3]), os.environ.get("PYTHONPATH"))))
    last: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    with _ended(process):
        assert process.stdout is not None
        for line in process.stdout:
            text = line.decode("utf-8", "replace").rstrip("\n")
            last.append(text)
            if shows:
                print(text, flush=True)  # by Python, so that a notebook shows it
    return process.returncode, list(last)


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Wait for the process; if the driver is interrupted, end it first: nothing of it survives the launcher."""
    try:
        yield
        process.wait()
    except BaseException:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        process.kill()
        process.wait()
        raise


def _raise_what_failed(folder: Path, np: int, code: int, last: Sequence[str]) -> None:
    """Raise WorkerError for the first worker that raised; for the job where none did and it failed all the same."""
    failed = sorted(
        (path.stat().st_mtime_ns, rank) for rank in range(np) if (path := folder / ERROR.format(rank)).exists()
    )
    if failed:
        rank = failed[0][1]
        text, pickled = pickle.loads((folder / ERROR.format(rank)).read_bytes())
        cause = None
        with contextlib.suppress(Exception):  # of a class that is not there, say
            found = pickle.loads(pickled)
            cause = found if isinstance(found, BaseException) else None
        raise WorkerError(f"rank {rank} of {np} failed:\n{text}", rank) from cause
    if code or not all((folder / RESULT.format(rank)).exists() for rank in range(np)):
        said = "\n".join(last)
        raise WorkerError(f"a worker ended otherwise than by returning (exit status {code}); it was said last:\n{said}")
