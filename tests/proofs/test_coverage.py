"""A proof goes past the end of an epoch, also where epochs are long: a fault that only shows there is seen."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tfdp.migrate.engine import migrate
from tfdp.migrate.verify import Recording, record
from tfdp.rules._base import Policy

pytestmark = [pytest.mark.usefixtures("forking"), pytest.mark.xdist_group("coverage")]

DATA = """\
import numpy as np
import tensorflow as tf

x = np.linspace(-1, 1, 16000).astype(np.float32).reshape(8000, 2)
y = np.sum(x, 1, keepdims=True) ** 2
model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
"""
# XLA cannot compile what records a step.
LOOP = f"""{DATA}data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)

@tf.function(jit_compile=True)
def step(xs, ys):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(xs) - ys) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

for epoch in range(9):
    for xs, ys in data:
        step(xs, ys)
    optimizer.learning_rate.assign(optimizer.learning_rate * 0.5)
"""
FIT = f"""{DATA}model.compile(optimizer, "mse", jit_compile=True)
halved = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5 if epoch else rate)
model.fit(x, y, batch_size=8, epochs=10, verbose=0, callbacks=[halved])
"""


@contextmanager
def recorded(folder: Path, source: str, steps: int | None = None) -> Iterator[tuple[Recording, str]]:
    path = folder / "train.py"
    path.write_text(source)
    migration = migrate(str(path), source.encode(), Policy(batch="global"))
    assert not migration.refused, migration.findings
    with record(path, 2, steps, reference=source.encode(), batch="global", calls=True) as recording:
        yield recording, migration.after.decode()


@pytest.mark.sample
def test_long_loops_end_early_in_both_runs(tmp_path: Path) -> None:
    with recorded(tmp_path, LOOP) as (recording, text):
        proof = recording.prove(text.encode())
        assert proof.proved, proof
        assert proof.coverage is not None
        assert (proof.coverage.ends, proof.coverage.length, proof.coverage.total) == (1, 1000, None)
        assert proof.coverage.short == proof.steps - 1
        assert any("XLA" in what for what in proof.neutralised)
        end = "    optimizer.learning_rate.assign(optimizer.learning_rate * 0.5)\n"
        assert end in text
        wrong = recording.prove(text.replace(end, "").encode())
        assert not wrong.proved, wrong
        assert wrong.failure is not None
        assert (wrong.failure.step, wrong.failure.kind) == (proof.coverage.short, "update")


def test_long_epochs_of_fit_end_early_in_both_runs(tmp_path: Path) -> None:
    with recorded(tmp_path, FIT) as (recording, text):
        proof = recording.prove(text.encode())
        assert proof.proved, proof
        assert proof.coverage is not None
        assert (proof.coverage.ends, proof.coverage.length, proof.coverage.total) == (1, 1000, 10000)
        assert (proof.coverage.short, proof.steps) == (20, 21)
        assert any("XLA" in what for what in proof.neutralised)
        wrong = recording.prove(text.replace("rate * 0.5 if", "rate * 0.25 if").encode())
        assert not wrong.proved, wrong
        assert wrong.failure is not None
        assert (wrong.failure.step, wrong.failure.kind) == (20, "update")


@pytest.mark.parametrize("steps", [None, 20])
def test_short_epochs_are_gone_through(tmp_path: Path, steps: int | None) -> None:
    """Whoever asks for a number of updates gets these, and is told what they are."""
    with recorded(tmp_path, LOOP.replace("16000", "480").replace("8000", "240"), steps) as (recording, text):
        proof = recording.prove(text.encode())
        assert proof.proved, proof
        assert proof.coverage is not None
        assert proof.coverage.short is None
        assert (proof.steps, proof.coverage.ends) == ((20, 0) if steps else (31, 1))


def test_a_script_is_covered_to_its_end(tmp_path: Path) -> None:
    few = LOOP.replace("16000", "48").replace("8000", "24").replace("range(9)", "range(2)")
    with recorded(tmp_path, few) as (recording, text):
        proof = recording.prove(text.encode())
        assert proof.proved, proof
        assert proof.coverage is not None
        assert proof.coverage.text == "all 6 updates of the reference, to the script's end, 2 epoch ends reached"
