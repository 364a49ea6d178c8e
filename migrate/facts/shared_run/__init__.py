"""What a script needs where every worker runs the whole of it, and its own rows of each model call."""

from __future__ import annotations

from .kept import Kept
from .refused import OTHER_SYSTEMS
from .retired import PLACES
from .run import SharedRun

__all__ = ["OTHER_SYSTEMS", "PLACES", "Kept", "SharedRun"]
