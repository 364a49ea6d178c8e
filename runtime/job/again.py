"""A rank that an engine has started begins once more, where Python has begun in an environment of its own making."""

import os
import sys
from collections.abc import Mapping

from ..clusters.found import Found
from ..foundation import LaunchEnvironmentError

_ORDER = "PYTHONHASHSEED"
_ADVICE = f"give all ranks the same {_ORDER} yourself, as by `mpirun -x {_ORDER}=0` or `export {_ORDER}=0` before srun"


def one_order(found: Found, environ: Mapping[str, str]) -> None:
    """See to it that all ranks go through a set of texts in the same order: label numbers or lists of files hang on it.

    Python draws that order when it starts, and `tfdp run` fixes it before. Here the same program is begun once more
    in this very process, which comes back to this place with the order fixed.

    Raises:
        LaunchEnvironmentError: it cannot be begun once more, and what to do.
    """
    if environ.get(_ORDER, "random") not in ("", "random"):
        return
    if "mpi4py.MPI" in sys.modules:
        raise LaunchEnvironmentError(
            f"sets of texts have another order on each rank, and this one cannot begin once more to change that: MPI "
            f"has been started in it. Call dp.init() before mpi4py is imported, or {_ADVICE}"
        )
    line = sys.orig_argv[1:]
    if not _can_be_repeated(line):
        raise LaunchEnvironmentError(
            f"sets of texts have another order on each rank, and `{' '.join(sys.orig_argv)}` cannot be started once "
            f"more to change that (does the script come from standard input, or change the folder?): {_ADVICE}"
        )
    if found.rank == 0:
        print(
            f"tfdp: {found.engine} has started this script; it begins once more with {_ORDER}=0, so that sets have one "
            f"order on all {found.size} ranks (to save the moment, {_ADVICE})",
            file=sys.stderr,
        )
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *line], {**environ, _ORDER: "0"})


def _can_be_repeated(line: list[str]) -> bool:
    """Whether the command line leads to the same program again: a module, a text, or a script that is still there."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if getattr(main, "__spec__", None) is not None or sys.argv[0] == "-c":
        return True
    return bool(line) and path is not None and os.path.exists(sys.argv[0]) and os.path.samefile(sys.argv[0], path)
