"""Why two records differ."""

from __future__ import annotations

from .causation import diagnose
from .causes import Cause, Diagnosis, places

__all__ = ["Cause", "Diagnosis", "diagnose", "places"]
