"""`horovod.keras` over this runtime: `horovod.tensorflow.keras` by another name."""

from __future__ import annotations

from ..tensorflow.keras import *  # noqa: F403 - the same names
from ..tensorflow.keras import __all__ as __all__
from ..tensorflow.keras import __getattr__ as __getattr__
