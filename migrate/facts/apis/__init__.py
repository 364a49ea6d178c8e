"""Tables of what is known of the functions and methods of libraries; each name is said of once."""

from __future__ import annotations

from .functions import CHOOSES_ONE, LOADS, NEW_AXIS, ON_ROOT, POWERS, RANGES, SAME_COUNT, SAME_ELEMENTS, SAME_NUMBER
from .keras import CALLBACKS, EACH_EPOCH, EACH_STEP, EXAMPLES, FITS, OF_FUNCTIONS, POSITIONS, RATES, SCHEDULER
from .lengths import AS_LONG, AS_SAID, CHOOSES, CHOOSING_METHODS, COUNTS, OUTSIDE
from .methods import (
    ASSIGNS,
    CALLED,
    CHANGES_OBJECT,
    CHANGES_VARIABLE,
    KERAS_LOSS,
    MAKES_WEIGHT,
    OF_ITEMS,
    OF_TEXTS,
    PUTS_IN,
    READS_NUMBER,
)
from .values import CHANCE, DRAWN, ENDINGS, OF_KIND, PURE, SEEDED, UNASKED

__all__ = [
    "ASSIGNS",
    "AS_LONG",
    "AS_SAID",
    "CALLBACKS",
    "CALLED",
    "CHANCE",
    "CHANGES_OBJECT",
    "CHANGES_VARIABLE",
    "CHOOSES",
    "CHOOSES_ONE",
    "CHOOSING_METHODS",
    "COUNTS",
    "DRAWN",
    "EACH_EPOCH",
    "EACH_STEP",
    "ENDINGS",
    "EXAMPLES",
    "FITS",
    "KERAS_LOSS",
    "LOADS",
    "MAKES_WEIGHT",
    "NEW_AXIS",
    "OF_FUNCTIONS",
    "OF_ITEMS",
    "OF_KIND",
    "OF_TEXTS",
    "ON_ROOT",
    "OUTSIDE",
    "POSITIONS",
    "POWERS",
    "PURE",
    "PUTS_IN",
    "RANGES",
    "RATES",
    "READS_NUMBER",
    "SAME_COUNT",
    "SAME_ELEMENTS",
    "SAME_NUMBER",
    "SCHEDULER",
    "SEEDED",
    "UNASKED",
]
