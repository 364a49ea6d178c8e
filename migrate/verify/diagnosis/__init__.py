"""Why two records differ."""

from __future__ import annotations

from .causation import diagnose
from .causes import Cause, places

__all__ = ["Cause", "diagnose", "places"]
