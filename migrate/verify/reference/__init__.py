"""The one-process script with which a migrated one is compared."""

from __future__ import annotations

from .making import NoReferenceError, reference
from .widen import NotWidenedError, widened

__all__ = ["NoReferenceError", "NotWidenedError", "reference", "widened"]
