"""What each process of a `Runner` runs: call the function, leave what it gives, or what it raised, for the driver."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from pathlib import Path

from ..clusters import local
from .driver import CALL, ERROR, PATH, RESULT


def main() -> None:
    """Read the folder named on the command line, and call what is in it."""
    import cloudpickle

    folder, rank = Path(sys.argv[1]), int(os.environ[local.RANK])
    try:
        # Before the function is looked for: where the driver finds its module is where it is.
        sys.path[:], every = pickle.loads((folder / PATH).read_bytes())
        function, args, kwargs = pickle.loads((folder / CALL).read_bytes())
        value = function(*args, **kwargs)
        _leave(folder / RESULT.format(rank), cloudpickle.dumps(value if every or rank == 0 else None))
    except BaseException as error:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__.tb_next))  # type: ignore[union-attr]
        try:
            pickled = cloudpickle.dumps(error)
        except Exception:  # it holds something that cannot be sent: its text tells
            pickled = b""
        _leave(folder / ERROR.format(rank), pickle.dumps((text, pickled)))
        raise


def _leave(path: Path, content: bytes) -> None:
    """In one piece: a process may be ended at any time."""
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.rename(path)
