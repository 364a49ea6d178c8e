"""What would train another model and has no rewrite: rows mixed, steps counted, models that drift, files unguarded,
what each process makes for itself."""

from __future__ import annotations

from .drift import Drift
from .fed_rows import fed_otherwise
from .inputs import Inputs
from .mixing import UNSETTLED, Mixing, Unsettled
from .own_values import OwnValues
from .paired import Paired
from .patching import patched
from .placing import unplaced
from .replay import replayed
from .row_lengths import RowLengths
from .shares import Shares
from .stepwise import Stepwise

__all__ = [
    "UNSETTLED",
    "Drift",
    "Inputs",
    "Mixing",
    "OwnValues",
    "Paired",
    "RowLengths",
    "Shares",
    "Stepwise",
    "Unsettled",
    "fed_otherwise",
    "patched",
    "replayed",
    "unplaced",
]
