"""Tables of what is known of the functions and methods of libraries; each name is said of once."""

from __future__ import annotations

from .functions import CHOOSES_ONE, NEW_AXIS, RANGES, SAME_COUNT, SAME_ELEMENTS, SAME_NUMBER
from .lengths import AS_LONG, AS_SAID, CHOOSES, CHOOSING_METHODS, COUNTS, OUTSIDE
from .methods import ASSIGNS, CALLED, CHANGES_VARIABLE, KERAS_LOSS, MAKES_WEIGHT, PUTS_IN, READS_NUMBER
from .values import CHANCE, DRAWN, ENDINGS, OF_KIND, PURE, UNASKED

__all__ = [
    "ASSIGNS",
    "AS_LONG",
    "AS_SAID",
    "CALLED",
    "CHANCE",
    "CHANGES_VARIABLE",
    "CHOOSES",
    "CHOOSES_ONE",
    "CHOOSING_METHODS",
    "COUNTS",
    "DRAWN",
    "ENDINGS",
    "KERAS_LOSS",
    "MAKES_WEIGHT",
    "NEW_AXIS",
    "OF_KIND",
    "OUTSIDE",
    "PURE",
    "PUTS_IN",
    "RANGES",
    "READS_NUMBER",
    "SAME_COUNT",
    "SAME_ELEMENTS",
    "SAME_NUMBER",
    "UNASKED",
]
