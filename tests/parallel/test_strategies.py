"""Scripts under a strategy of `tf.distribute`, migrated: they train as under the strategy itself, on two devices."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tfdp.migrate import engine

pytest.importorskip("tensorflow")

CASES = Path(__file__).parents[2] / "fixtures" / "rules" / "TFDP070"
TWO_DEVICES = """
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
"""
SAVE = "\nnp.savez('{name}', *[each.numpy() for each in {model}.trainable_variables])\n"


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize(("case", "model"), [("strategy_handed_on", "trainer.model"), ("steps_on_replicas", "model")])
def test_it_trains_as_on_two_devices(case, model, launch, tmp_path):
    source = (CASES / f"{case}.py").read_text().partition("\n# output\n")[0]
    seeded = source.replace(
        "import tensorflow as tf\n", "import tensorflow as tf\ntf.keras.utils.set_random_seed(3)\n", 1
    )
    original = seeded.replace("set_random_seed(3)\n", f"set_random_seed(3)\n{TWO_DEVICES}", 1)
    original = original.replace("MirroredStrategy(", 'MirroredStrategy(["CPU:0", "CPU:1"], ').replace(", )", ")")
    original += f"\nassert {'trainer.' if 'trainer' in model else ''}strategy.num_replicas_in_sync == 2\n"
    path = tmp_path / "original.py"
    path.write_text(original + SAVE.format(name="original", model=model))
    subprocess.run([sys.executable, str(path)], cwd=tmp_path, check=True, timeout=120)

    migrated = engine.migrate("train.py", (seeded + SAVE.format(name="migrated", model=model)).encode())
    assert not migrated.refused
    done = launch(2, f"import os\nos.chdir({str(tmp_path)!r})\n{migrated.after.decode()}")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "original.npz") as wanted, np.load(tmp_path / "migrated.npz") as found:
        assert len(wanted.files) == len(found.files) > 0
        for name in wanted.files:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-6)
