"""The proof of scripts that Keras trains: `fit`, `train_on_batch`, an own `train_step`; and ways to go wrong."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate.verify import Recording, prove, record
from tfdp.rules._base import Policy

pytestmark = pytest.mark.usefixtures("forking")

MODEL = """
import numpy as np
import tensorflow as tf
# INIT
keras = tf.keras
random = np.random.default_rng(1)
x = random.normal(size=(96, 6)).astype("float32")
y = random.integers(0, 3, 96)


class Distilled(keras.Model):
    def train_step(self, data):
        x, y = data[:2]
        with tf.GradientTape() as tape:
            value = tf.add_n([self.compute_loss(x, y, self(x, training=True)), *self.losses]) * 0.5
        gradients = [2 * each for each in tape.gradient(value, self.trainable_variables)]
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": value}


def model(kind):
    inputs = keras.Input((6,))
    hidden = keras.layers.Dense(8, "relu", kernel_regularizer=keras.regularizers.L2(0.05))(inputs)
    hidden = keras.layers.BatchNormalization()(hidden)
    hidden = keras.layers.GaussianNoise(0.1)(keras.layers.Dropout(0.5)(hidden))
    return kind(inputs, keras.layers.Dense(3, "softmax")(hidden))
"""
FIT = """
first = model(keras.Model)
adam = OPTIMIZER(keras.optimizers.Adam(RATE, global_clipnorm=0.3))
first.compile(adam, "sparse_categorical_crossentropy", metrics=["acc"])
first.fit(SHARD(x), SHARD(y), batch_size=SIZE, epochs=2, validation_data=(x[:9], y[:9]), verbose=0)
second = model(Distilled)
second.compile(OPTIMIZER(keras.optimizers.SGD(RATE, momentum=0.9)), "sparse_categorical_crossentropy")
for start in range(0, 96, 32):
    rows = slice(start, start + 32)
    second.train_on_batch(SHARD(x[rows]), SHARD(y[rows]))
"""
STEPS = 9
RUNTIME = {"INIT": "import tfdp.runtime as dp; dp.init()", "OPTIMIZER": "dp.DistributedOptimizer", "SHARD": "dp.shard"}


def text(**change: str) -> bytes:
    found = MODEL + FIT
    for name, value in {"RATE": "0.02", "SIZE": "32", "OPTIMIZER": "", "SHARD": "", **change}.items():
        found = found.replace(f"# {name}" if name == "INIT" else name, value)
    return found.encode()


def migrated(**change: str) -> bytes:
    return text(**{**RUNTIME, "SIZE": "16", **change})


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    path = tmp_path_factory.mktemp("proof") / "train.py"
    path.write_bytes(text())
    with ExitStack() as stack:
        yield stack.enter_context(record(path, 2, STEPS, reference=text(), timeout=200.0))


def test_fit_and_train_on_batch_are_proved(recording: Recording) -> None:
    proof = recording.prove(migrated())
    assert proof.proved, proof.reason
    assert len(proof.points) == STEPS
    assert any("BatchNormalization" in line for line in proof.neutralised)
    assert proof.settings is not None
    assert proof.settings.text == "2 optimizers, set as in the reference"


SUM = "(lambda optimizer: dp.DistributedOptimizer(optimizer, op=dp.Sum))"


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize(
    ("change", "kind"),
    [({"OPTIMIZER": SUM}, "loss"), ({"SHARD": ""}, "loss"), ({"RATE": "0.01"}, "update")],
)
def test_ways_to_go_wrong_are_seen(recording: Recording, change: dict[str, str], kind: str) -> None:
    proof = recording.prove(migrated(**change))
    assert proof.failure is not None
    assert (proof.failure.kind, proof.failure.step) == (kind, 0)


def test_an_optimizer_that_averages_nothing_is_an_error(recording: Recording) -> None:
    proof = recording.prove(migrated(OPTIMIZER=""))
    assert not proof.proved
    assert "without averaging" in proof.reason


KERAS_3 = version("keras") >= "3" and os.environ.get("TF_USE_LEGACY_KERAS") not in {"1", "True", "true"}


@pytest.mark.skipif(KERAS_3, reason="the optimizers of Keras 3 have no minimize()")
@pytest.mark.parametrize("batch", ["per-worker", "global"])
def test_a_step_that_minimizes_is_proved(batch: str) -> None:
    script = Path(__file__).parents[2] / "fixtures" / "scripts" / "fit_custom_minimize" / "before.py"
    proof = prove(script, np=2, steps=4, policy=Policy("calls", batch))
    assert proof.proved, proof
