"""Scripts that are distributed already, by another system.

`single` gives the one-worker form, which the facts then see; `moved` the script in the runtime's names, which trains as
it did; `without_runtime` what one process runs of a script that was migrated, `to_horovod` that script in Horovod's.
"""

from __future__ import annotations

from .horovod import SYSTEMS, Moved, moved
from .migrated import without_runtime
from .stage import single
from .texts import Place, Single, Taken, origins
from .to_horovod import to_horovod

__all__ = [
    "SYSTEMS",
    "Moved",
    "Place",
    "Single",
    "Taken",
    "moved",
    "origins",
    "single",
    "to_horovod",
    "without_runtime",
]
