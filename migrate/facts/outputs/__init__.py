"""What a script writes and shows."""

from __future__ import annotations

from .effects import Effect, Effects, repeated
from .presence import Presence
from .writers import Writers

__all__ = ["Effect", "Effects", "Presence", "Writers", "repeated"]
