"""A script that another system distributes is held against its one-worker form, which trains as that system does."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate import engine
from tfdp.migrate.verify import record
from tfdp.migrate.verify.diagnosis import Cause
from tfdp.migrate.verify.texts import of_original

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rules" / "TFDP070"
TWO_DEVICES = """
import tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
tf.keras.utils.set_random_seed(7)
"""
KEPT = "\nnp.savez('out.npz', *[np.asarray(each) for each in model.variables])\n"


def original(name: str) -> str:
    return (FIXTURES / f"{name}.py").read_text().partition("\n# output\n")[0]


@pytest.mark.sample
@pytest.mark.usefixtures("forking")
def test_a_fit_in_a_scope_is_proved_and_an_unscaled_sum_is_not(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(original("fit_in_a_scope"))
    texts = of_original(str(path), 2)
    assert (texts.road, texts.batch) == ("calls", "global")
    assert b"strategy" not in texts.reference
    with record(path, 2, None, reference=texts.reference, batch="global", calls=True) as recording:
        proof = recording.prove(texts.migrated)
        assert proof.proved, str(proof)
        assert len(proof.points) == 8
        failed = recording.prove(texts.migrated.replace(b'"sgd"', b"tf.keras.optimizers.SGD(0.01 * dp.size())"))
        assert (failed.proved, failed.cause) == (False, Cause.RATE.value), str(failed)


@pytest.mark.parametrize("np", [2, 3])
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("fit_in_a_scope", '"sgd"', "tf.keras.optimizers.SGD(0.01 * dp.size())"),
        ("several_hosts", '"sgd"', "tf.keras.optimizers.SGD(0.01 * dp.size())"),
        ("steps_on_replicas", "global_batch_size=GLOBAL_BATCH)", "global_batch_size=GLOBAL_BATCH * dp.size())"),
    ],
)
@pytest.mark.usefixtures("forking")
def test_scripts_under_strategies_are_proved_and_their_mutants_are_not(
    name: str, old: str, new: str, np: int, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    source = original(name)
    path.write_text(regularised(source) if name == "steps_on_replicas" else source)
    texts = of_original(str(path), np)
    with record(path, np, None, reference=texts.reference, batch="global", calls=True) as recording:
        proof = recording.prove(texts.migrated)
        assert proof.proved, str(proof)
        assert old.encode() in texts.migrated
        assert not recording.prove(texts.migrated.replace(old.encode(), new.encode())).proved


def regularised(source: str) -> str:
    """The loop with a penalty of which each replica takes its part."""
    layer, loss = "tf.keras.layers.Dense(1)", "global_batch_size=GLOBAL_BATCH)"
    assert layer in source
    assert loss in source
    source = source.replace(layer, 'tf.keras.layers.Dense(1, kernel_regularizer="l2")')
    return source.replace(loss, f"{loss}\n        loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))")


def test_the_one_worker_form_trains_as_two_replicas_do(tmp_path: Path) -> None:
    source = regularised(original("steps_on_replicas").replace("shuffle(64)", "shuffle(64, seed=3)"))
    source = source.replace("for inputs in batches:", "for inputs in (each for _ in range(25) for each in batches):")
    found = engine.single("train.py", source.encode())
    assert not found.refused
    assert "strategy" not in found.after.decode()
    weights = []
    for name, text in (("replicas", source), ("single", found.after.decode())):
        folder = tmp_path / name
        folder.mkdir()
        counted = re.sub(r"print\(float\(loss\)\)", "", text)
        (folder / "train.py").write_text(TWO_DEVICES + counted + KEPT)
        subprocess.run([sys.executable, "train.py"], cwd=folder, check=True, capture_output=True, timeout=300)
        with np.load(folder / "out.npz") as saved:
            weights.append([saved[each] for each in saved.files])
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
