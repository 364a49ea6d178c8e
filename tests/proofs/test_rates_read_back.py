"""A rate that a script reads back and trains by is the script's own on N workers: nothing scales it, or once more."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from handmade import changed

pytest.importorskip("tensorflow")

from tfdp.migrate.engine import migrate
from tfdp.migrate.verify import record
from tfdp.migrate.verify.diagnosis import Cause
from tfdp.rules._base import AS_USUAL, Policy

pytestmark = pytest.mark.usefixtures("forking")

SCRIPT = """
import json
import tensorflow as tf

x = tf.random.normal([24, 5])
y = tf.reduce_sum(x, 1, keepdims=True)
model = tf.keras.Sequential([tf.keras.layers.Dense(4, "tanh"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.01)
model.compile(optimizer, "mse")
slower = tf.keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=0)
history = model.fit(x, y, batch_size=8, epochs=2, callbacks=[slower], verbose=0).history
{read}
model.compile(tf.keras.optimizers.SGD(rate), "mse")
model.fit(x, y, batch_size=8, epochs=1, verbose=0)
"""
WAYS = {
    "get_config": 'rate = optimizer.get_config()["learning_rate"] / 2',
    "history": 'rate = float(history["learning_rate" if "learning_rate" in history else "lr"][-1])',
    "json": """\
with open("settings.json", "w") as file:
    json.dump({"rate": float(optimizer.learning_rate.numpy())}, file)
with open("settings.json") as file:
    rate = json.load(file)["rate"]""",
}


@pytest.mark.parametrize("way", [pytest.param(each, marks=[pytest.mark.sample] * (each == "json")) for each in WAYS])
def test_a_rate_that_is_read_back_is_proved_and_one_that_is_scaled_is_not(
    way: str, tmp_path: Path, stack: ExitStack
) -> None:
    path, text = tmp_path / "train.py", SCRIPT.replace("{read}", WAYS[way])
    path.write_text(text)
    migration = migrate("train.py", text.encode(), AS_USUAL)
    assert (migration.road, migration.batch, migration.refused) == ("calls", "global", False), migration.findings
    recording = stack.enter_context(record(path, 2, None, reference=text.encode(), batch="global", calls=True))
    proof = recording.prove(migration.after)
    assert proof.proved, str(proof)
    assert len(proof.points) == 9
    scaled = changed(migration.after.decode(), [("SGD(rate)", "SGD(rate * dp.size())")])
    failed = recording.prove(scaled.encode())
    assert (failed.proved, failed.cause) == (False, Cause.RATE.value), str(failed)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", [Policy("input"), Policy(batch="per-worker")], ids=["input", "per-worker"])
def test_no_rate_that_is_read_back_is_widened(way: str, policy: Policy) -> None:
    migration = migrate("train.py", SCRIPT.replace("{read}", WAYS[way]).encode(), policy)
    assert migration.refused
    assert not migration.changed
