"""A model whose layers look at the whole batch, and draw at random, is proved; the proof says what it changed."""

from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate.verify import prove
from tfdp.migrate.verify.record import DRAWN, NORMALIZED, SHUFFLED

pytestmark = pytest.mark.usefixtures("forking")

SCRIPT = """
import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).normal(size=(48, 4)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :1] ** 2)).shuffle(48).batch(8)


class Halved(tf.keras.layers.Layer):
    def call(self, x):
        return x / 2


model = tf.keras.Sequential([
    Halved(),
    tf.keras.layers.Dense(8),
    tf.keras.layers.BatchNormalization(),
    tf.keras.layers.ReLU(),
    tf.keras.layers.Dropout(0.5),
    tf.keras.layers.Dense(1),
])
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for x, y in dataset.repeat(2):
    train_step(x, y)
"""


def test_batch_normalization_and_dropout(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    proof = prove(path, np=2, steps=3, shard="input")
    assert proof.proved, proof
    assert proof.neutralised == (
        f"{SHUFFLED}: line 6",
        f"{NORMALIZED}: batch_normalization (line 17)",
        f"{DRAWN}: dropout (line 19)",
    )
    assert proof.data is not None
    assert (proof.data.outcome, proof.data.examples) == ("shared", ((24, 24),))
    proof = prove(path, np=2, steps=3, keep_randomness=True, shard="input")
    assert not proof.proved
    assert proof.randomness_kept
    assert proof.neutralised == ()
    assert proof.loss > 0.01, "the runs drew as they do in life"
    assert "nothing can be concluded" in str(proof).splitlines()[0]
