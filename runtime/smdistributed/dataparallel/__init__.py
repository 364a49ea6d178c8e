"""See `tfdp.runtime.smdistributed.dataparallel.tensorflow`."""

import importlib
from typing import Any

__version__ = "1.8.0"  # of the library whose names these are: scripts print it


def __getattr__(name: str) -> Any:
    if name != "tensorflow":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.tensorflow")
