"""How a value differs between workers: not at all, by chance, or because each worker has other examples.

SEMANTICS.md 6: what decides something must be equal on every rank. A value that is equal but for its last bits, or but
for the moment at which it was read (a validation loss over whole data, a clock, a file), becomes equal by taking rank
0's; one that comes from a rank's own examples has to be averaged first.
"""

from __future__ import annotations

from enum import Enum


class Mark(Enum):
    """Why a value may not be the same on all ranks."""

    CHANCE = "equal on all workers but for chance: rank 0's is as good as any"
    DRAWN = "drawn by each worker for itself: rank 0's is as good as any"
    PROCESS = "made by each process for itself, of its clock, its number or the system's chance"
    ORDER = "in the order of a set, which each process has for itself"
    LOCAL = "made from this worker's examples"
    UNKNOWN = "not understood"


Marks = frozenset[Mark]
BY_CHANCE: Marks = frozenset({Mark.CHANCE, Mark.DRAWN, Mark.PROCESS, Mark.ORDER})  # settled by asking rank 0
BY_PROCESS: Marks = frozenset({Mark.PROCESS, Mark.ORDER})
SAME: Marks = frozenset()
