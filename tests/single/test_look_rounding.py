"""How far apart results of a look may be: by the coarsest numbers that the call computes with."""

import numpy as np
import pytest
import tensorflow as tf

from tfdp.runtime.calls.observed import Observer, observed
from tfdp.runtime.calls.rounding import Rounding, limit_of


@pytest.mark.parametrize(
    ("inside", "difference", "is_allowed"),
    [
        (tf.float64, 1e-12, True),
        (tf.float64, 1e-6, False),
        (tf.float32, 1e-6, True),
        (tf.float32, 1e-3, False),
        (tf.float16, 1e-3, True),
        (tf.float16, 1e-1, False),
    ],
)
def test_gradients_in_double_precision_are_rounded_as_what_is_computed(inside, difference, is_allowed):
    rows = tf.constant(np.linspace(0.1, 1.0, 12).reshape(4, 3))
    observer, rounding = Observer(set(), [rows]), Rounding()
    with observed(observer.seen):
        result = tf.cast(tf.tanh(tf.cast(rows, inside)), tf.float64)
    rounding.inside = observer.rounding
    assert rounding.inside == limit_of(inside)
    assert rounding.allows(result, result + difference) is is_allowed
