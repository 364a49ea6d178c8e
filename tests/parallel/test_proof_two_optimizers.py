"""Two models, two tapes in one `with`, two optimizers with slots that first exist inside the step."""

from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate.verify import prove

SCRIPT = """
import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).random((60, 4)).astype(np.float32)
g = tf.keras.Sequential([tf.keras.layers.Dense(4)])
d = tf.keras.Sequential([tf.keras.layers.Dense(6, activation="relu"), tf.keras.layers.Dense(1)])
g_opt = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)
d_opt = tf.keras.optimizers.Adam(2e-3)
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)


@tf.function
def step(x):
    with tf.GradientTape() as gt, tf.GradientTape() as dt:
        fake = g(x)
        real_score, fake_score = d(x), d(fake)
        g_loss = bce(tf.ones_like(fake_score), fake_score)
        d_loss = bce(tf.ones_like(real_score), real_score) + bce(tf.zeros_like(fake_score), fake_score)
    g_opt.apply_gradients(zip(gt.gradient(g_loss, g.trainable_variables), g.trainable_variables))
    d_opt.apply_gradients(zip(dt.gradient(d_loss, d.trainable_variables), d.trainable_variables))


for epoch in range(3):
    for batch in tf.data.Dataset.from_tensor_slices(x).shuffle(60).batch(10):
        step(batch)
"""


def test_both_are_proved_and_one_forgotten_is_not(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    proof = prove(path, np=2, steps=3)
    assert proof.proved, proof
    from tfdp.migrate import engine

    migrated = engine.migrate(str(path), SCRIPT.encode()).after.decode()
    wrapped = "dp.DistributedGradientTape(dt)"
    assert wrapped in migrated
    forgotten = prove(path, np=2, steps=3, migrated=migrated.replace(wrapped, "dt").encode())
    assert not forgotten.proved
