"""What operations do to the rows of a batch, by the names that NumPy, TensorFlow and Keras' ops share.

Names stand without their module, and without the `reduce_` that TensorFlow puts before some of them.
"""

from __future__ import annotations

CHOOSES_ROWS = frozenset({"gather", "take", "boolean_mask", "compress", "take_along_axis"})
CHOOSES_PARTS = CHOOSES_ROWS | {"slice", "strided_slice", "gather_nd", "dynamic_slice", "roll"}
"""Take elements along an axis by their places."""


PARTIAL = "functools.partial"
"""A function with some of its arguments given."""
