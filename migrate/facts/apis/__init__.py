"""Tables of what is known of the functions of libraries: what their values depend on, and how long those are."""

from __future__ import annotations

from .lengths import AS_LONG, AS_SAID, CHOOSES, CHOOSING_METHODS, COUNTS, OUTSIDE
from .values import CHANCE, DRAWN, ENDINGS, OF_KIND, PURE, UNASKED

__all__ = [
    "AS_LONG",
    "AS_SAID",
    "CHANCE",
    "CHOOSES",
    "CHOOSING_METHODS",
    "COUNTS",
    "DRAWN",
    "ENDINGS",
    "OF_KIND",
    "OUTSIDE",
    "PURE",
    "UNASKED",
]
