"""What a script needs where every worker runs the whole of it, and its own rows of each model call."""

from __future__ import annotations

from .retired import PLACES
from .run import SharedRun

__all__ = ["PLACES", "SharedRun"]
