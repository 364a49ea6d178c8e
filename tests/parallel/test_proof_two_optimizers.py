"""Two models and two optimizers: two tapes in one `with`; a critic that is updated several times in a step of Keras."""

from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate.verify import prove

pytestmark = pytest.mark.usefixtures("forking")

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
    update = "d_opt.apply_gradients("
    assert update in migrated
    forgotten = prove(path, np=2, steps=3, migrated=migrated.replace(update, f"dp.rank() or {update}").encode())
    assert not forgotten.proved


WGAN = """
import numpy as np
import tensorflow as tf
from tensorflow import keras

x = np.random.default_rng(0).normal(size=(96, 12)).astype("float32")


class WGAN(keras.Model):
    def __init__(self):
        super().__init__()
        self.critic = keras.Sequential([keras.Input((12,)), keras.layers.Dense(16), keras.layers.Dense(1)])
        self.generator = keras.Sequential([keras.Input((8,)), keras.layers.Dense(12)])

    def compile(self, c_optimizer, g_optimizer):
        super().compile()
        self.c_optimizer = c_optimizer
        self.g_optimizer = g_optimizer

    def penalty(self, size, real, fake):
        between = real + tf.random.uniform([size, 1]) * (fake - real)
        with tf.GradientTape() as inner:
            inner.watch(between)
            score = self.critic(between)
        slope = inner.gradient(score, [between])[0]
        norm = tf.sqrt(tf.reduce_sum(tf.square(slope), axis=[1]) + 1e-12)
        return tf.reduce_mean((norm - 1.0) ** 2)

    def train_step(self, real):
        size = tf.shape(real)[0]
        for _ in range(3):
            noise = tf.random.normal((size, 8))
            with tf.GradientTape() as tape:
                fake = self.generator(noise)
                c_loss = tf.reduce_mean(self.critic(fake)) - tf.reduce_mean(self.critic(real))
                c_loss += 10.0 * self.penalty(size, real, fake)
            gradients = tape.gradient(c_loss, self.critic.trainable_variables)
            self.c_optimizer.apply_gradients(zip(gradients, self.critic.trainable_variables))
        noise = tf.random.normal((size, 8))
        with tf.GradientTape() as tape:
            g_loss = -tf.reduce_mean(self.critic(self.generator(noise)))
        gradients = tape.gradient(g_loss, self.generator.trainable_variables)
        self.g_optimizer.apply_gradients(zip(gradients, self.generator.trainable_variables))
        return {"c_loss": c_loss, "g_loss": g_loss}


c_optimizer = keras.optimizers.Adam(learning_rate=2e-4, beta_1=0.5, beta_2=0.9)
g_optimizer = keras.optimizers.Adam(learning_rate=1e-4, beta_1=0.5, beta_2=0.9)
wgan = WGAN()
wgan.compile(c_optimizer, g_optimizer)
wgan.fit(x, batch_size=16, epochs=2, verbose=0)
"""


@pytest.mark.long
def test_each_update_of_a_critic_in_a_train_step_is_a_step(tmp_path: Path) -> None:
    """TensorFlow's optimizer of graphs once dropped the record of the critic's, from the reference alone."""
    path = tmp_path / "train.py"
    path.write_text(WGAN)
    proof = prove(path, np=2, steps=6)
    assert proof.proved, proof
    assert sum(row.gradient is not None for row in proof.table) == 6
    from tfdp.migrate import engine

    migrated = engine.migrate(str(path), WGAN.encode()).after.decode()
    rate = "learning_rate=2e-4"
    assert rate in migrated
    slower = prove(path, np=2, steps=2, migrated=migrated.replace(rate, "learning_rate=1e-4").encode())
    assert slower.cause == "learning rate", slower
