"""See `tfdp.runtime.smdistributed.dataparallel.tensorflow`."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name != "tensorflow":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.tensorflow")
