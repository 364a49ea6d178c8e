"""What cannot be kept to one worker, or is another thing than it is called: writers out of place, names put anew."""

from __future__ import annotations

from .patching import patched
from .placing import unplaced

__all__ = ["patched", "unplaced"]
