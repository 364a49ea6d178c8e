"""Scripts that can be migrated, and of which nevertheless no reference with a larger batch can be made."""

from __future__ import annotations

import pytest

from tfdp.migrate.verify.reference import NoReferenceError, reference

IMPORTED_SIZES = """\
import tensorflow as tf
from settings import BATCH, HIDDEN

x, y = tf.ones([64, 4]), tf.ones([64, 1])
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
model = tf.keras.Sequential([tf.keras.layers.Dense(HIDDEN), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
for a, b in dataset:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(a) - b) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""


def test_a_number_that_may_be_the_batch_size_is_named_with_what_to_do() -> None:
    with pytest.raises(NoReferenceError) as caught:
        reference("train.py", IMPORTED_SIZES.encode(), 2, "per-worker")
    said = str(caught.value)
    assert said.startswith("train.py:6: `HIDDEN`: cannot tell whether this use of the batch size")
    assert "with 2 times the batch has to know; give it its value in this file" in said
