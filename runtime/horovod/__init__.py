"""Horovod's API over this runtime: a script moves by changing its import.

    import tfdp.runtime.horovod.tensorflow as hvd

Names, arguments and their order are those of Horovod 0.28.1; what is left out says so where it is used. A script
trains as it did: it shards its data, seeds and writes by itself, each rank computes its own batches, and gradients are
averaged. Other than with Horovod, variables start alike before the first step instead of after it, and an optimizer
that is given is the one that is returned.
"""

from __future__ import annotations

import importlib
from typing import Any

from .names import LEFT_OUT, MODULES

__all__ = ["LEFT_OUT", "MODULES"]


def __getattr__(name: str) -> Any:
    """The modules, as `import horovod.tensorflow` gives them."""
    if name not in MODULES["horovod"]:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it has tensorflow and keras")
    return importlib.import_module(f"{__name__}.{name}")
