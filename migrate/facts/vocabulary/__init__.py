"""The closed vocabulary: what a script may consist of whose input is sharded unless another road is asked for."""

from .statements import first_outside
from .words import CALLBACK_SETTINGS, OPTIMIZER_SETTINGS

__all__ = ["CALLBACK_SETTINGS", "OPTIMIZER_SETTINGS", "first_outside"]
