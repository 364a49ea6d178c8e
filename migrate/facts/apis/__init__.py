"""Tables of what is known of the functions and methods of libraries; each name is said of once."""

from __future__ import annotations

from .datasets import (
    DRAWS_IN_MAP,
    MIXES_DATASETS,
    NO_DATASETS,
    SAME_BATCHES,
    SHARDS_DATASET,
    SHUFFLES_FILES,
    TAKES_NO_RECORDS,
)
from .draws import DRAW_SIZES, DRAWS_BY_SEED, DRAWS_INDICES
from .functions import (
    GATHERS,
    MAKES_ARRAY,
    NEW_ARRAYS,
    NEW_AXIS,
    RANGES,
    SAME_COUNT,
    SAME_ELEMENTS,
    SAME_NUMBER,
    UPDATES_NOTHING,
)
from .lengths import AS_LONG, AS_SAID, CHOOSES, CHOOSING_METHODS, COUNTS, OUTSIDE
from .machines import CHOOSES_DEVICES, CONFIGURES_SESSION, RUNS_NOTHING, SETS_ENVIRONMENT, SETS_SESSION
from .methods import ASSIGNS, CALLED, CHANGES_VARIABLE, FILLS_LISTS, KERAS_LOSS, MAKES_WEIGHT, PUTS_IN, READS_NUMBER
from .values import CHANCE, DRAWN, ENDINGS, OF_KIND, PURE, UNASKED

__all__ = [
    "ASSIGNS",
    "AS_LONG",
    "AS_SAID",
    "CALLED",
    "CHANCE",
    "CHANGES_VARIABLE",
    "CHOOSES",
    "CHOOSES_DEVICES",
    "CHOOSING_METHODS",
    "CONFIGURES_SESSION",
    "COUNTS",
    "DRAWN",
    "DRAWS_BY_SEED",
    "DRAWS_INDICES",
    "DRAWS_IN_MAP",
    "DRAW_SIZES",
    "ENDINGS",
    "FILLS_LISTS",
    "GATHERS",
    "KERAS_LOSS",
    "MAKES_ARRAY",
    "MAKES_WEIGHT",
    "MIXES_DATASETS",
    "NEW_ARRAYS",
    "NEW_AXIS",
    "NO_DATASETS",
    "OF_KIND",
    "OUTSIDE",
    "PURE",
    "PUTS_IN",
    "RANGES",
    "READS_NUMBER",
    "RUNS_NOTHING",
    "SAME_BATCHES",
    "SAME_COUNT",
    "SAME_ELEMENTS",
    "SAME_NUMBER",
    "SETS_ENVIRONMENT",
    "SETS_SESSION",
    "SHARDS_DATASET",
    "SHUFFLES_FILES",
    "TAKES_NO_RECORDS",
    "UNASKED",
    "UPDATES_NOTHING",
]
