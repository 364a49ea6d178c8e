"""Facts: what a training script says. Rules ask `Script`; nothing here changes anything."""

from .describe import describe
from .provenance import provenance
from .reaching import is_reached
from .script import Script, read

__all__ = ["Script", "describe", "is_reached", "provenance", "read"]
