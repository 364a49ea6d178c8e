"""A rank that an engine has started begins once more, because Python has begun in an environment of its own making."""

import contextlib
import os
import sys
import zlib
from collections.abc import Mapping

from ..clusters import local
from ..clusters.found import Found
from ..foundation import LaunchEnvironmentError

_ORDER, _PATH = "PYTHONHASHSEED", "PYTHONPATH"
_DRAWS = "TFDP_DRAWS"  # which the hook in this folder reads
_AT_START = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "launch", "at_start")
_ADVICE = f"give all ranks the same {_ORDER}, as by `mpirun -x {_ORDER}=0` or `export {_ORDER}=0` before srun"


def begin_alike(found: Found, environ: Mapping[str, str]) -> None:
    """See to it that all ranks begin alike: that they go through a set of texts in one order, on which label numbers or
    lists of files hang, and that what they draw before they have joined is the same on all.

    Both are decided when Python starts, and `tfdp run` does it before. Here the same program is begun once more in this
    very process, which comes back to this place. Where that cannot be, all is well with a PYTHONHASHSEED of the user's.

    Raises:
        LaunchEnvironmentError: it cannot be begun once more, and there is none; with what to do.
    """
    if environ.get(_DRAWS, "").split()[:2] == ["self", str(os.getpid())]:
        return
    line = sys.orig_argv[1:]
    if "mpi4py.MPI" in sys.modules or not _can_be_repeated(line):
        if environ.get(_ORDER, "random") not in ("", "random"):
            return
        why = (
            "MPI has been started in it: call dp.init() before mpi4py is imported"
            if "mpi4py.MPI" in sys.modules
            else f"`{' '.join(sys.orig_argv)}` is not there to be started again (does it come from standard input?)"
        )
        raise LaunchEnvironmentError(
            f"sets of texts have another order on each rank, and this one cannot begin once more to change that: "
            f"{why}. Or {_ADVICE}"
        )
    if found.rank == 0:
        print(
            f"tfdp: {found.engine} has started this script; it begins once more, so that all {found.size} ranks "
            "draw, and go through sets, alike",
            file=sys.stderr,
        )
    sys.stdout.flush()
    sys.stderr.flush()
    # Of several hosts each may have a name of its own for the job; they all know the secret.
    common = found.job if found.local_size == found.size else environ.get(local.SECRET, found.job)
    path = os.pathsep.join(filter(None, [_AT_START, environ.get(_PATH)]))
    change = {_DRAWS: f"self {os.getpid()} {zlib.crc32(f'{found.engine} {common}'.encode())}", _PATH: path}
    order = {} if environ.get(_ORDER, "random") not in ("", "random") else {_ORDER: "0"}
    with contextlib.suppress(OSError):  # then the program is not found, and Python says so
        os.chdir(_began_in())
    os.execve(sys.executable, [sys.executable, *line], {**environ, **order, **change})


def _began_in() -> str:
    """The folder in which Python has begun: of a module, which is found from there, the first place of `sys.path`."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    origin = getattr(spec, "origin", None)
    if spec is None or origin is None:
        return os.getcwd()
    above = os.path.abspath(origin)
    for _ in range(spec.name.count(".") + 1):
        above = os.path.dirname(above)
    return above if os.path.abspath(sys.path[0]) == above else os.getcwd()


def _can_be_repeated(line: list[str]) -> bool:
    """Whether the command line leads to the same program again: a module, a text, or a script that is still there."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if getattr(main, "__spec__", None) is not None or sys.argv[0] == "-c":
        return True
    return bool(line) and path is not None and os.path.exists(sys.argv[0]) and os.path.samefile(sys.argv[0], path)
