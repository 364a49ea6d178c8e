"""What would train another model and has no rewrite: rows mixed, steps counted, models that drift, files unguarded."""

from __future__ import annotations

from .drift import drifting
from .fed_rows import fed_otherwise
from .mixing import Mixing
from .placing import unplaced
from .replay import replayed
from .row_lengths import RowLengths
from .stepwise import Stepwise

__all__ = [
    "Mixing",
    "RowLengths",
    "Stepwise",
    "drifting",
    "fed_otherwise",
    "replayed",
    "unplaced",
]
