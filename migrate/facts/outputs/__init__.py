"""What a script writes and shows."""

from __future__ import annotations

from .guards import is_on_root
from .trackers import Ask, Trackers
from .writers import Writers
from .written import Effect, Written, is_plain

__all__ = [
    "Ask",
    "Effect",
    "Trackers",
    "Writers",
    "Written",
    "is_on_root",
    "is_plain",
]
