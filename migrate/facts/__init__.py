"""Facts: what a training script says. Rules ask `Script`; nothing here changes anything."""

from .describe import describe
from .provenance import provenance
from .reaching import fits_once, is_reached
from .script import Script, read

__all__ = ["Script", "describe", "fits_once", "is_reached", "provenance", "read"]
