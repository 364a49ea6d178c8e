"""`horovod.keras.callbacks` over this runtime."""
# ruff: noqa: PLC0414 - what scripts import

from ..tensorflow.keras.callbacks import *  # noqa: F403 - the same names
from ..tensorflow.keras.callbacks import __all__ as __all__
from ..tensorflow.keras.callbacks import __getattr__ as __getattr__
