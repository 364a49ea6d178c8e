"""What a `tf.function` that is being traced computes before it runs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def lifted(tensor: tf.Tensor) -> Any:
    """The value of a tensor of the traced function, computed outside of it; None where TensorFlow would leave it there.

    As TensorFlow does with the initialisers of a function's variables, by the same means, which have no public name:
    a copy of its operations is run once, with the seeds that they have in the function. What depends on an argument or
    a variable is not taken out.
    """
    from tensorflow.python.eager import lift_to_graph

    def computed() -> Any:
        return lift_to_graph.lift_to_graph([tensor], tf.compat.v1.get_default_graph())[tensor]

    try:
        with tf.init_scope():
            # Not by `tf.function`, which warns of one that is traced again and again.
            value = tf.compat.v1.wrap_function(computed, [])()
    except (lift_to_graph.UnliftableError, tf.errors.OpError):
        return None  # what fails does so again in the function
    return value if hasattr(value, "numpy") else None
