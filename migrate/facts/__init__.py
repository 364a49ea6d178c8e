"""Facts: what a training script says. Rules ask `Script`; nothing here changes anything."""

from .describe import describe
from .script import Script, read

__all__ = ["Script", "describe", "read"]
