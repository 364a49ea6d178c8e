"""All workers start with the variables of rank 0."""

from __future__ import annotations

from .same_start import check_same_start
from .state import broadcast_state, follow_root

__all__ = ["broadcast_state", "check_same_start", "follow_root"]
