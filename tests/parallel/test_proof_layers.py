"""A model whose layers draw at random is proved on sharded input; the proof says what it changed."""

from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate.verify import prove
from tfdp.migrate.verify.record import DRAWN, SHUFFLED
from tfdp.rules._base import Policy

pytestmark = pytest.mark.usefixtures("forking")

SCRIPT = """
import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).normal(size=(48, 4)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :1] ** 2)).shuffle(48).batch(8)


model = tf.keras.Sequential([
    tf.keras.layers.Rescaling(0.5),
    tf.keras.layers.Dense(8),
    tf.keras.layers.ReLU(),
    tf.keras.layers.Dropout(0.5),
    tf.keras.layers.Dense(1),
])
optimizer = tf.keras.optimizers.Adam(0.01)
loss_of = tf.keras.losses.MeanSquaredError()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for x, y in dataset.repeat(2):
    train_step(x, y)
"""


def test_shuffles_and_dropout(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    proof = prove(path, np=2, steps=3, policy=Policy("input"))
    assert proof.proved, proof
    assert proof.neutralised == (f"{SHUFFLED}: line 6", f"{DRAWN}: dropout (line 13)")
    assert proof.data is not None
    assert (proof.data.outcome, proof.data.examples) == ("shared", ((24, 24),))
    proof = prove(path, np=2, steps=3, policy=Policy("input"), keep_randomness=True)
    assert not proof.proved
    assert proof.randomness_kept
    assert proof.neutralised == ()
    assert proof.loss > 0.01, "the runs drew as they do in life"
    assert "nothing can be concluded" in str(proof).splitlines()[0]
