"""Tables of what is known of the functions and methods of libraries; each name is said of once."""

from __future__ import annotations

from .counts import COMPUTES, COUNTS_EXAMPLES, GIVEN_OUTSIDE, LOCAL_STEPS, ROUNDS, SIZES_OF_FLOWS
from .functions import (
    CALLS_IT,
    COUNTS_UP,
    LINEAR,
    NEW_AXIS,
    RANGES,
    RANKS,
    SAME_COUNT,
    SAME_ELEMENTS,
    SAME_NUMBER,
    SETS_VARIABLE,
    SPANS,
)
from .lengths import AS_LONG, AS_SAID, CHOOSES, CHOOSING_METHODS, COUNTS, OUTSIDE
from .methods import (
    ASSIGNS,
    CALLED,
    CHANGES_VARIABLE,
    COUNTS_STEPS,
    DESCRIBES,
    KERAS_COMPUTES,
    KERAS_LOSS,
    MAKES_WEIGHT,
    PUTS_IN,
    READS_NUMBER,
)
from .metrics import METRIC_COUNTS, METRIC_RATIOS
from .values import CHANCE, DRAWN, ENDINGS, OF_KIND, PURE, UNASKED

__all__ = [
    "ASSIGNS",
    "AS_LONG",
    "AS_SAID",
    "CALLED",
    "CALLS_IT",
    "CHANCE",
    "CHANGES_VARIABLE",
    "CHOOSES",
    "CHOOSING_METHODS",
    "COMPUTES",
    "COUNTS",
    "COUNTS_EXAMPLES",
    "COUNTS_STEPS",
    "COUNTS_UP",
    "DESCRIBES",
    "DRAWN",
    "ENDINGS",
    "GIVEN_OUTSIDE",
    "KERAS_COMPUTES",
    "KERAS_LOSS",
    "LINEAR",
    "LOCAL_STEPS",
    "MAKES_WEIGHT",
    "METRIC_COUNTS",
    "METRIC_RATIOS",
    "NEW_AXIS",
    "OF_KIND",
    "OUTSIDE",
    "PURE",
    "PUTS_IN",
    "RANGES",
    "RANKS",
    "READS_NUMBER",
    "ROUNDS",
    "SAME_COUNT",
    "SAME_ELEMENTS",
    "SAME_NUMBER",
    "SETS_VARIABLE",
    "SIZES_OF_FLOWS",
    "SPANS",
    "UNASKED",
]
