"""Scripts that `--target horovod` writes, under Horovod itself: the weights are those of the same script under tfdp.

Those of the proof's reference, that is (tests/proofs). In float64, so that nothing but rounding differs.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from tfdp.migrate import engine
from tfdp.rules._base import Policy

from .test_horovod import BIN, FIXTURES, PEER, run

pytestmark = pytest.mark.skipif(not (PEER / ".installed").exists(), reason="Horovod is not built here: make peers")

PRECISE = "tf.keras.backend.set_floatx('float64'); tf.keras.utils.set_random_seed(3)\n"
UNSEEDED = "tf.keras.backend.set_floatx('float64')\n"
SCALED = "tf.keras.optimizers.SGD(0.05)"
PARTS = f"""\
import numpy as np
import tensorflow as tf
{PRECISE}
rng = np.random.default_rng(0)
x = rng.normal(size=(96, 6))
y = x @ rng.normal(size=(6, 1))
model = tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(5, "tanh"), tf.keras.layers.Dense(1)])
optimizer = {SCALED}
loss_fn = tf.keras.losses.MeanSquaredError()
data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(4)
for a, b in data.take(30):
    with tf.GradientTape() as tape:
        loss = loss_fn(b, model(a, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    print("loss", float(loss))
model.save_weights("end.weights.h5")
"""


def written(script: str) -> str:
    found = engine.horovod("train.py", script.encode())
    assert found.changed, found.findings
    return found.after.decode()


def of_arrays(text: str) -> str:
    text = text.replace("digits = np.load", f"import tensorflow as tf\n{PRECISE}digits = np.load").replace(
        "1601", "1602"
    )
    return text.replace("batch_size=", "shuffle=False, batch_size=") + 'model.save_weights("end.weights.h5")\n'


def of_a_tape(text: str) -> str:
    """The model is built by the first batch; N divides the records."""
    text = text.replace(".shuffle(2000)", "").replace("digits = np.load", f"{PRECISE}digits = np.load")
    text = text.replace("((images, labels))", "((images[:1200], labels[:1200]))").replace("range(5)", "range(2)")
    return text + 'mnist_model.save_weights("end.weights.h5")\n'


def of_arrays_in_files(text: str) -> str:
    data = "rng = np.random.default_rng(0)\nx, y = rng.normal(size=(96, 6)), rng.normal(size=(96, 1))\n"
    text = text.replace('x = np.load("x.npy")\ny = np.load("y.npy")\n', PRECISE + data).replace(".shuffle(256)", "")
    return text + 'model.save_weights("end.weights.h5")\n'


def weights(folder: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}

    def keep(name: str, value: object) -> None:
        if isinstance(value, h5py.Dataset):
            found[name] = np.asarray(value)

    with h5py.File(folder / "end.weights.h5") as file:
        file.visititems(keep)
    assert found
    return found


def trained(text: str, start: list[str], folder: Path) -> dict[str, np.ndarray]:
    (folder / "scripts").mkdir(parents=True)
    shutil.copytree(FIXTURES / "scripts" / "data", folder / "data")
    (folder / "scripts" / "train.py").write_text(text)
    run([*start, "scripts/train.py"], folder)
    return weights(folder)


EXPRESSED = {
    "scripts/fit_split/before.py": (of_arrays, 2),
    "scripts/fit_weighted/before.py": (of_arrays, 3),
    "scripts/fit_folds/before.py": (of_arrays, 2),
    "scripts/smddp_mnist/before.py": (of_a_tape, 2),
    "rules/TFDP011/factor_of_the_epoch_and_a_step_that_is_shown.py": (of_arrays_in_files, 3),
}


def test_every_fixture_that_can_be_written_for_horovod_is_trained_here() -> None:
    files = [*FIXTURES.glob("scripts/*/before.py"), *FIXTURES.glob("rules/*/*.py")]
    found = {str(f.relative_to(FIXTURES)): engine.horovod("train.py", f.read_bytes()) for f in files}
    assert {name for name, each in found.items() if each.changed and not each.refused} == EXPRESSED.keys()


@pytest.mark.parametrize(("name", "change", "np_"), [*((n, *how) for n, how in EXPRESSED.items()), ("", str, 3)])
def test_a_script_trains_under_horovod_as_under_tfdp(
    name: str, change: Callable[[str], str], np_: int, tmp_path: Path
) -> None:
    script = change((FIXTURES / name).read_text() if name else PARTS)
    ours = engine.migrate("train.py", script.encode(), Policy("input"))
    assert (ours.road, ours.batch) == ("input", "per-worker")
    python = str(BIN / "python")
    horovod = [str(BIN / "horovodrun"), "--gloo", "-np", str(np_), python]
    tfdp = [python, "-m", "tfdp.runtime.launch", "-np", str(np_)]
    found, expected = (
        trained(written(script), horovod, tmp_path / "horovod"),
        trained(ours.after.decode(), tfdp, tmp_path / "tfdp"),
    )
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-9, atol=1e-12, err_msg=key)


def test_workers_start_alike_without_a_seed(tmp_path: Path) -> None:
    """Also weights that the first batch builds: all draw by one seed."""
    script = of_a_tape((FIXTURES / "scripts" / "smddp_mnist" / "before.py").read_text()).replace(PRECISE, UNSEEDED)
    text = written(script)
    text += '\nnp.savez(f"{hvd.rank()}.npz", *mnist_model.get_weights())\n'
    (tmp_path / "scripts").mkdir()
    shutil.copytree(FIXTURES / "scripts" / "data", tmp_path / "data")
    (tmp_path / "scripts" / "train.py").write_text(text)
    run([str(BIN / "horovodrun"), "--gloo", "-np", "2", str(BIN / "python"), "scripts/train.py"], tmp_path)
    with np.load(tmp_path / "0.npz") as first, np.load(tmp_path / "1.npz") as second:
        assert first.files
        assert all(np.array_equal(first[name], second[name]) for name in first.files)


def test_rank_0_downloads_first(tmp_path: Path) -> None:
    """With an optimizer of Keras' older kind, whose variables are a method's."""
    start, end = PARTS.index("rng ="), PARTS.index("model =")
    data = "(x, y), _ = tf.keras.datasets.mnist.load_data()\nx, y = x * 1.0, y * 1.0\n"
    text = written(PARTS[:start] + data + PARTS[end:])
    assert "rank_0_first(tf.keras.datasets.mnist.load_data)" in text
    # In its place what the others find only when rank 0 has been there.
    made = "def load():\n    if hvd.rank() == 0:\n        np.savez('x.npz', x=np.ones((24, 6)))\n"
    made += "    x = np.load('x.npz')['x']\n    return (x, x[:, :1]), None\n"
    text = text.replace("tf.keras.datasets.mnist.load_data", "load").replace("\nhvd.init()", f"\n{made}\nhvd.init()")
    text = text.replace("tf.keras.optimizers.SGD(", "tf.keras.optimizers.legacy.SGD(")
    assert trained(text, [str(BIN / "horovodrun"), "--gloo", "-np", "2", str(BIN / "python")], tmp_path)


def test_a_rate_that_is_not_scaled_would_be_seen(tmp_path: Path) -> None:
    text = written(PARTS)
    other = text.replace("SGD(0.05 * hvd.size())", "SGD(0.05)")
    assert other != text
    start = [str(BIN / "horovodrun"), "--gloo", "-np", "2", str(BIN / "python")]
    found = [trained(each, start, tmp_path / str(n)) for n, each in enumerate((text, other))]
    assert any(np.linalg.norm(found[0][key] - found[1][key]) > 1e-3 for key in found[0])


def test_records_that_cannot_be_dealt_evenly_end_the_job(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(written(PARTS.replace(".repeat()", "")))
    start = [str(BIN / "horovodrun"), "--gloo", "-np", "5", str(BIN / "python")]
    with pytest.raises(AssertionError, match="96 records cannot be dealt evenly to 5 workers"):
        run([*start, "train.py"], tmp_path)
    assert not os.path.exists(tmp_path / "end.weights.h5")
