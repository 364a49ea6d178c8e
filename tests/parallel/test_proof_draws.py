"""Draws inside the model, in the step and on the way of the data: all workers draw what one process does."""

from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate import engine
from tfdp.migrate.verify import record
from tfdp.rules._base import Policy

pytestmark = pytest.mark.usefixtures("forking")

SCRIPT = """
import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).random((64, 6)).astype(np.float32)
model = tf.keras.Sequential([
    tf.keras.layers.Dense(8), tf.keras.layers.Dropout(0.3), tf.keras.layers.GaussianNoise(0.1), tf.keras.layers.Dense(6)
])
opt = tf.keras.optimizers.Adam(1e-3)
spread = tf.Variable(0.5)


def changed(record):
    return tf.image.random_flip_left_right(record[None, :, None])[0, :, 0] + tf.random.uniform([6], -0.2, 0.2)


@tf.function
def step(x):
    noise = tf.random.normal(tf.shape(x), stddev=0.5)
    with tf.GradientTape() as tape:
        out = tf.nn.dropout(model(x + noise, training=True), 0.2) + tf.random.normal(tf.shape(x), stddev=spread)
        loss = tf.reduce_mean(tf.square(out - x))
    variables = model.trainable_variables + [spread]
    opt.apply_gradients(zip(tape.gradient(loss, variables), variables))


for epoch in range(3):
    for batch in tf.data.Dataset.from_tensor_slices(x).shuffle(64).map(changed).batch(8):
        step(batch + tf.random.uniform([batch.shape[0], 6], -0.1, 0.1))
    if epoch == 0:
        print(model(tf.random.normal([16, 6])))
"""


def test_all_workers_draw_alike(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    migrated = engine.migrate(str(path), SCRIPT.encode(), Policy(batch="global")).after.decode()
    with record(path, 2, 6, reference=SCRIPT.encode(), batch="global", calls=True) as recording:
        proof = recording.prove(migrated.encode())
        assert proof.proved, proof
        assert not proof.neutralised
        noise = "tf.random.normal(tf.shape(x), stddev=0.5)"
        wider = ("uniform([6], -0.2, 0.2)", "uniform([6], -0.2, 0.3)")
        for old, new in ((noise, "tf.random.normal([1, 6], stddev=0.5)"), ("(batch + ", "(batch - "), wider):
            assert migrated.count(old) == 1
            assert not recording.prove(migrated.replace(old, new).encode()).proved
