"""What the data are: datasets, arrays, how they are taken, and where they are sharded."""

from __future__ import annotations

from .arrays import Arrays
from .chains import Chain, draws, drops_remainder
from .datasets import Datasets
from .deals import Deal, find_batch_deal, find_deal, of_lengths, of_padded
from .drawing import Draw, numpy_draw
from .misses import Sought
from .seeding import draws_in, seeds, unseeded
from .sharing import Sharing, Switches
from .shuffles import shuffles_of
from .take import Missed, Sureness, Take
from .take import Taken as ArrayTaken
from .taken import Taken, Takings, endless
from .takes import Takes

__all__ = [
    "ArrayTaken",
    "Arrays",
    "Chain",
    "Datasets",
    "Deal",
    "Draw",
    "Missed",
    "Sharing",
    "Sought",
    "Sureness",
    "Switches",
    "Take",
    "Taken",
    "Takes",
    "Takings",
    "draws",
    "draws_in",
    "drops_remainder",
    "endless",
    "find_batch_deal",
    "find_deal",
    "numpy_draw",
    "of_lengths",
    "of_padded",
    "seeds",
    "shuffles_of",
    "unseeded",
]
