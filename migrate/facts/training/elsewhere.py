"""Training in other files: what is known of a name that a script imports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Elsewhere:
    """Where a name that is imported trains, and where its file writes, if it does: `steps.py:12`."""

    place: str
    writes: str = ""
