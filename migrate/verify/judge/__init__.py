"""Whether two records are of the same training."""

from __future__ import annotations

from .compare import (
    EPSILON,
    EPSILONS,
    FLOAT32,
    GRADIENT,
    LOSS,
    Comparison,
    Failure,
    Limits,
    Point,
    Row,
    compared,
    drawn,
    lock,
)
from .free import LIMIT, judge_free, narrow

__all__ = [
    "EPSILON",
    "EPSILONS",
    "FLOAT32",
    "GRADIENT",
    "LIMIT",
    "LOSS",
    "Comparison",
    "Failure",
    "Limits",
    "Point",
    "Row",
    "compared",
    "drawn",
    "judge_free",
    "lock",
    "narrow",
]
