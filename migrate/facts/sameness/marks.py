"""How a value differs between workers: not at all, or by what each process finds or makes for itself.

SEMANTICS.md 6: what decides something must be equal on every rank. A value that is equal but for the moment at which it
was read (a clock, a file) becomes equal by taking rank 0's.
"""

from __future__ import annotations

from enum import Enum


class Mark(Enum):
    """Why a value may not be the same on all ranks."""

    CHANCE = "equal on all workers but for chance: rank 0's is as good as any"
    PROCESS = "made by each process for itself, of its clock, its number or the system's chance"


Marks = frozenset[Mark]
BY_CHANCE: Marks = frozenset({Mark.CHANCE, Mark.PROCESS})  # settled by asking rank 0
BY_PROCESS: Marks = frozenset({Mark.PROCESS})
SAME: Marks = frozenset()
