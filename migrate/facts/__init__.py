"""Facts: what a training script says. Rules ask `Script`; nothing here changes anything."""

from tfdp.migrate.facts.describe import describe
from tfdp.migrate.facts.script import Script, read

__all__ = ["Script", "describe", "read"]
