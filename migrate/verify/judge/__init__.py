"""Whether two records are of the same training."""

from __future__ import annotations

from .compare import (
    EPSILON,
    EPSILONS,
    FLOAT32,
    GRADIENT,
    LOSS,
    UNDECIDED,
    UNDECIDED_CALLS,
    Comparison,
    Failure,
    Limits,
    Point,
    Row,
    compared,
    compared_by_rank,
    drawn,
    lock,
)
from .free import LIMIT, judge_free, narrow
from .rounding import Rounding, first, in_float64, in_permuted_rows, undecided

__all__ = [
    "EPSILON",
    "EPSILONS",
    "FLOAT32",
    "GRADIENT",
    "LIMIT",
    "LOSS",
    "UNDECIDED",
    "UNDECIDED_CALLS",
    "Comparison",
    "Failure",
    "Limits",
    "Point",
    "Rounding",
    "Row",
    "compared",
    "compared_by_rank",
    "drawn",
    "first",
    "in_float64",
    "in_permuted_rows",
    "judge_free",
    "lock",
    "narrow",
    "undecided",
]
