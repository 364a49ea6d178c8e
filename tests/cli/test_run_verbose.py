"""`tfdp run -v` says what sharded calls have divided."""

from pathlib import Path

SCRIPT = """
import tfdp.runtime as dp
dp.init(shard_calls=True)
import keras
import numpy as np
import tensorflow as tf


class Centred(keras.layers.Layer):
    def call(self, x):
        return x - tf.reduce_mean(x, 0)


model = keras.Sequential([keras.layers.Dense(300), Centred(), keras.layers.Dense(2)])
model.compile("sgd", "mse")
model.fit(np.ones((20, 4)), np.ones((20, 2)), verbose=0, batch_size=10)
"""


def test_what_is_divided_and_what_is_not_and_what_is_gathered(tfdp, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = tfdp("run", "-np", "2", "-v", "train.py")
    assert done.code == 0, done.err
    said = [line for line in done.err.splitlines() if "[0] tfdp: " in line]
    assert any("divided over the workers: Dense 'dense' (1,200 bytes gathered" in line for line in said), said
    assert any(
        "computed by every worker: Sequential 'sequential', Centred 'centred' (does what may mix rows" in line
        for line in said
    ), said
    assert "most is gathered of what Dense 'dense" in said[-1]
    assert "[1] tfdp: " not in done.err
