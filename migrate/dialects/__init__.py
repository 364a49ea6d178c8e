"""Scripts that are distributed already, by another system.

`single` gives the one-worker form, which the facts then see; `moved` the script in the runtime's names, which trains as
it did.
"""

from __future__ import annotations

from .horovod import SYSTEMS, Moved, moved
from .stage import single
from .texts import Place, Single, Taken

__all__ = ["SYSTEMS", "Moved", "Place", "Single", "Taken", "moved", "single"]
