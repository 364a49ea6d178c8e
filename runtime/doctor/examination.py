"""Looks, tries, and gives a verdict."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from ..clusters import engines
from ..foundation import TfdpError
from .figures import said
from .seen import Line, seen

_PATIENCE_SECONDS = 180.0
_TAIL_LINES = 6
_MODULE = "tfdp.runtime.doctor.selftest"
_WIDTH = 12


def examine(np: int, hosts: Sequence[str], environ: Mapping[str, str]) -> int:
    """Print what is here and what a self-test on `np` processes shows; 0 where they can train together, else 1.

    Args:
        np: how many processes; where an engine has started this one, those of its job instead.
        hosts: options of `tfdp run` that name other hosts, or none.
        environ: the environment.
    """
    if _is_rank_of_several(environ):
        return _as_rank(environ)
    lines = []
    for line in seen(environ):
        _print(line)
        lines.append(line)
    tried = _tried(np, hosts, environ)
    _print(tried)
    wrong = [line.name for line in (*lines, tried) if line.wrong]
    _print(Line("verdict", f"not ready: see {', '.join(wrong)}" if wrong else "ready"))
    return 1 if wrong else 0


def _is_rank_of_several(environ: Mapping[str, str]) -> bool:
    try:
        found = engines.recognise(environ)
    except TfdpError:
        return False
    return found is not None and found.size > 1


def _as_rank(environ: Mapping[str, str]) -> int:
    """Under an engine each rank says what it sees, and they try it together."""
    found = engines.recognise(environ)
    assert found is not None
    for line in seen(environ):
        if found.rank == 0 or line.wrong:
            _print(line, f"[{found.rank}] ")
    # A program of its own: it may have to begin once more, as any script that an engine has started.
    command = [sys.executable, "-m", _MODULE]
    return subprocess.run(command, env={**environ}, pass_fds=_manager(environ), check=False).returncode


def _manager(environ: Mapping[str, str]) -> tuple[int, ...]:
    """MPICH's ranks have a socket to their manager."""
    fd = environ.get("PMI_FD", "")
    return (int(fd),) if fd.isdigit() else ()


def _tried(np: int, hosts: Sequence[str], environ: Mapping[str, str]) -> Line:
    start = ["-m", "tfdp.migrate", "run", *hosts] if hosts else ["-m", "tfdp.runtime.launch", "-np", str(np)]
    line = [sys.executable, *start, "--", "-m", _MODULE, "--json"]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONSAFEPATH": "1", **environ}
    try:
        done = subprocess.run(line, env=quiet, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Line("self-test", f"nothing came of it in {_PATIENCE_SECONDS:g} s", wrong=True)
    told = [text.partition("] ")[2] for text in done.stdout.splitlines() if text.startswith("[0] {")]
    if done.returncode or not told:
        tail = "\n".join(f"{'':{_WIDTH}} {text}" for text in done.stderr.splitlines()[-_TAIL_LINES:])
        return Line("self-test", f"ended with {done.returncode}\n{tail}", wrong=True)
    found = json.loads(told[-1])
    gpus = f"{found['gpus']} GPU(s)" if found["gpus"] else "no GPU that TensorFlow can use"
    return Line("self-test", f"{said(found)}; {gpus}", wrong=bool(found["wrong"]))


def _print(line: Line, before: str = "") -> None:
    print(f"{before}{line.name:{_WIDTH}} {line.said}", flush=True)
