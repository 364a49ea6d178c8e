"""What a script writes and shows."""

from __future__ import annotations

from .changing import Changing
from .effects import Effect, Effects, repeated
from .presence import Presence
from .writers import Writers
from .written import Trains, Written

__all__ = [
    "Changing",
    "Effect",
    "Effects",
    "Presence",
    "Trains",
    "Writers",
    "Written",
    "repeated",
]
