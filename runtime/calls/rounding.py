"""When two results are equal but for rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

# Of the largest number.
_DOUBLE, _SINGLE, _HALF = 1e-9, 1e-4, 3e-2


def limit_of(dtype: tf.DType) -> float:
    """The rounding of results of this dtype, relative to the largest number."""
    if dtype in (tf.float16, tf.bfloat16):
        return _HALF
    return _DOUBLE if dtype in (tf.float64, tf.complex128) else _SINGLE


class Rounding:
    """How far apart results of a call may be.

    inside: the rounding of what it computes with. A layer may be given numbers in double precision, and so may be their
    gradients, and compute in single or half precision.
    """

    def __init__(self) -> None:
        self.inside = 0.0

    def allows(self, one: Any, other: Any) -> bool:
        """Whether two arrays are equal up to the rounding of results, measured by the largest number of `one`; or two
        other things are.
        """
        if not hasattr(one, "dtype"):
            return bool(one is other or one == other)
        dtype = tf.as_dtype(one.dtype)
        one, other = np.asarray(one), np.asarray(other)
        if one.shape != other.shape:
            return False
        if not (dtype.is_floating or dtype.is_complex):
            return bool(np.array_equal(one, other))
        one, other = (each.astype(np.complex128 if dtype.is_complex else np.float64) for each in (one, other))
        finite = np.isfinite(one)
        if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
            return False
        limit = max(limit_of(dtype), self.inside) * max(float(np.abs(one[finite]).max(initial=0.0)), 1e-30)
        return bool((np.abs(one[finite] - other[finite]) <= limit).all())
