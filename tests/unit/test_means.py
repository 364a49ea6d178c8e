"""Which losses are known to be means over the batch: only with them a step may get the batches of all workers."""

from __future__ import annotations

import pytest

from tfdp.migrate import engine
from tfdp.rules._base import Policy

LOOP = """\
import secrets
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices((tf.ones([64, 3]), tf.ones([64, 1]))).batch(8)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
rows = tf.keras.losses.MeanSquaredError(reduction="none")
total = tf.keras.losses.MeanSquaredError(reduction="sum")
mse = tf.keras.losses.MeanSquaredError()
weight = 0.5


def within(y, p):
    return tf.reduce_mean(tf.reduce_sum((y - p) ** 2, axis=1))


def summed(y, p):
    return tf.reduce_sum((y - p) ** 2)


for x, y in data:
    with tf.GradientTape() as tape:
        p = model(x)
        {loss}
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
"""
MEANS = (
    "loss = mse(y, p)",
    "loss = tf.reduce_mean(rows(y, p))",
    "loss = within(y, p)",
    "loss = weight * within(y, p) + 0.1 * tf.add_n(model.losses)",
    "loss = mse(y, p)\n        loss += sum(model.losses)",
    "loss = -tf.math.reduce_mean(p) / 2",
)
OTHERS = (
    "loss = total(y, p)",
    "loss = rows(y, p)",
    "loss = tf.reduce_sum(rows(y, p)) / 8",
    "loss = summed(y, p)",
    "loss = within(y, p) + summed(y, p)",
    "loss = tf.nn.l2_loss(y - p)",
    "loss = tf.nn.compute_average_loss(rows(y, p), global_batch_size=8)",
    "loss = 0.0\n        for i in range(8):\n            loss += mse(y[i], p[i])",
    "loss = tf.reduce_mean((y - p) ** 2, axis=0)",
    "loss = tf.keras.losses.mean_squared_error(y, p)",
    "loss = tf.sqrt(mse(y, p))",
    "loss = [mse(y, p), total(y, p)]",
    "loss = unknown(y, p)",
)
FIT = """\
import secrets
import tensorflow as tf
from elsewhere import unknown

x, y = tf.ones([64, 3]), tf.ones([64, 1])
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])


def by_row(a, b):
    return tf.reduce_mean((a - b) ** 2, axis=-1)


def summed(a, b):
    return tf.reduce_sum((a - b) ** 2)


model.compile("adam", loss={loss})
model.fit(x, y, batch_size=8, epochs=2)
"""
COMPILED = ('"mse"', "tf.keras.losses.Huber()", "tf.keras.losses.mean_squared_error", "by_row", '["mse", by_row]')
OTHERWISE = (
    "tf.keras.losses.Huber(reduction='sum')",
    "summed",
    "unknown",
    '["mse", summed]',
    "lambda a, b: summed(a, b)",
)


def refusals(text: str, loss: str) -> list[str]:
    found = engine.migrate("train.py", text.format(loss=loss).encode(), Policy(batch="per-worker"))
    return [f.message for f in found.findings if f.refusal]


@pytest.mark.parametrize("loss", MEANS)
def test_means_get_larger_batches(loss: str) -> None:
    assert not refusals(LOOP, loss)


@pytest.mark.parametrize("loss", OTHERS)
def test_what_is_not_known_to_be_one_keeps_the_scripts_batch(loss: str) -> None:
    assert "mean over the batch" in refusals(LOOP, loss)[0]


@pytest.mark.parametrize("loss", COMPILED)
def test_compiled_means_get_larger_batches(loss: str) -> None:
    assert not refusals(FIT, loss)


@pytest.mark.parametrize("loss", OTHERWISE)
def test_compiled_losses_that_are_not_known_to_be_one_keep_it(loss: str) -> None:
    assert "mean over the batch" in refusals(FIT, loss)[0]
