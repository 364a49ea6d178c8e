"""Of what kind the arguments of a `tf.function` are: for each it has a trace of its own."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import tensorflow as tf


def kind_of_call(function: Any, length: int | None, structure: Any) -> Any:
    """By what TensorFlow traces it once more: dtypes, shapes, and values that are no tensors.

    length: of the batch, where Python does not know how many rows there are.
    """
    if function.input_signature is not None:
        return None
    leaves = tf.nest.flatten(structure)
    return str(tf.nest.map_structure(lambda _: None, structure)), *(_of_leaf(each, length) for each in leaves)


def _of_leaf(leaf: Any, length: int | None) -> Any:
    if isinstance(leaf, np.ndarray | np.generic):
        return tf.as_dtype(leaf.dtype), leaf.shape
    if isinstance(leaf, tf.__internal__.CompositeTensor):
        return tf.type_spec_from_value(leaf)
    if tf.is_tensor(leaf):
        sizes = [None] if leaf.shape.rank is None else list(leaf.shape)
        return leaf.dtype, (length if sizes[:1] == [None] else sizes[0], *sizes[1:]) if sizes else ()
    return leaf if isinstance(leaf, Hashable) else id(leaf)
