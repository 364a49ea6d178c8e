"""Tape loops over batches that come as such: from another file, and from a maker that batches by itself."""

from pathlib import Path
from typing import Literal

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate import engine
from tfdp.migrate.verify import prove

pytestmark = pytest.mark.usefixtures("forking")

RECORDS = """
import numpy as np
import tensorflow as tf


def read(size):
    x = np.random.default_rng(3).normal(size=(150, 8)).astype("float32")
    return tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).shuffle(150).batch(size), 150 // size
"""
STEP = """
model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.01)
loss_fn = tf.keras.losses.MeanSquaredError()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for epoch in range(3):
    for x, y in dataset:
        train_step(x, y)
"""
ELSEWHERE = """
import tensorflow as tf
import records

dataset, steps = records.read(16)
"""
WINDOWS = """
import numpy as np
import tensorflow as tf

series = np.random.default_rng(3).normal(size=(80, 8)).astype("float32")
dataset = tf.keras.utils.timeseries_dataset_from_array(
    series, series.sum(1, keepdims=True), sequence_length=1, shuffle=True, batch_size=16
)
dataset = dataset.map(lambda x, y: (x[:, 0], y))
"""


def test_what_another_file_batches_is_sharded_in_one_order(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(ELSEWHERE + STEP)
    (tmp_path / "records.py").write_text(RECORDS)
    migrated = engine.migrate(str(path), path.read_bytes(), shard="input").after.decode()
    proof = prove(path, np=2, steps=10, migrated=migrated.encode())
    assert proof.proved, proof
    own_orders = "".join(line for line in migrated.splitlines(keepends=True) if "dp.common_seed" not in line)
    for broken in (own_orders, migrated.replace("dp.shard_batches(dataset)", "dataset")):
        assert broken != migrated
        assert not prove(path, np=2, steps=2, migrated=broken.encode()).proved


@pytest.mark.parametrize("batch", ["per-worker", "global"])
def test_what_its_maker_batches_is_sharded_by_batches_or_rows(
    tmp_path: Path, batch: Literal["per-worker", "global"]
) -> None:
    path = tmp_path / "train.py"
    path.write_text(WINDOWS + STEP)
    proof = prove(path, np=2, steps=4, batch=batch, shard="input")
    assert proof.proved, proof
