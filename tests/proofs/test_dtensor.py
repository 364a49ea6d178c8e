"""A script under DTensor with replicated weights: on any number of workers it trains as on one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate import engine
from tfdp.migrate.verify import record
from tfdp.migrate.verify.texts import of_original

SCRIPT = Path(__file__).parents[2] / "fixtures" / "dtensor" / "mlp.py"


def test_it_is_proved_and_another_rate_is_not() -> None:
    texts = of_original(str(SCRIPT), 2)
    assert (texts.road, texts.batch) == ("calls", "global")
    with record(SCRIPT, 2, None, reference=texts.reference, batch="global", calls=True) as recording:
        proof = recording.prove(texts.migrated)
        assert proof.proved, str(proof)
        assert len(proof.points) >= 20
        assert not recording.prove(texts.migrated.replace(b"learning_rate=1e-3", b"learning_rate=2e-3")).proved


@pytest.mark.parametrize(("dtype", "near"), [("float32", 2e-6), ("float64", 1e-9)])
def test_what_it_prints_is_that_of_one_worker(tmp_path: Path, dtype: str, near: float) -> None:
    migrated = engine.migrate(str(SCRIPT), in_dtype(SCRIPT.read_text(), dtype).encode())
    assert not migrated.refused
    text = migrated.after.replace(b"Path(__file__).resolve().parent.parent", f'Path("{SCRIPT.parent.parent}")'.encode())
    (tmp_path / "train.py").write_bytes(text)
    printed = {}
    for ranks in (1, 2, 4, 8):
        done = subprocess.run(
            [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(ranks), "train.py"],
            cwd=tmp_path,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed[ranks] = [float(each) for each in re.findall(r"(?:loss|accuracy): (\S+?),?(?:\s|$)", done.stdout)]
    assert len(printed[1]) == 12
    for ranks in (2, 4, 8):
        assert printed[ranks] == pytest.approx(printed[1], rel=0, abs=near)


def in_dtype(source: str, dtype: str) -> str:
    """The script with numbers of this type, and 12 digits of what it prints."""
    if dtype == "float32":
        return source
    for before, after in (
        ("tf.sqrt(6.)", "tf.sqrt(tf.constant(6.0, tf.float32))"),
        ("tf.float32", "tf.float64"),
        ("seed=(22, 23),", "seed=(22, 23), dtype=tf.float64,"),
        ("shape=[out_dim]", "shape=[out_dim], dtype=tf.float64"),
        ("shape=var.shape", "shape=var.shape, dtype=tf.float64"),
        (":.6f", ":.12f"),
    ):
        assert before in source
        source = source.replace(before, after)
    return source


def test_sharded_weights_are_refused_where_they_are_made(tmp_path: Path) -> None:
    source = SCRIPT.read_text().replace(
        "dtensor.Layout([dtensor.UNSHARDED, dtensor.UNSHARDED], mesh)",
        'dtensor.Layout(["batch", dtensor.UNSHARDED], mesh)',
    )
    migrated = engine.migrate("train.py", source.encode())
    text = migrated.after.replace(b"Path(__file__).resolve().parent.parent", f'Path("{SCRIPT.parent.parent}")'.encode())
    (tmp_path / "train.py").write_bytes(text)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode != 0
    assert "is sharded (batch, unsharded): weights are replicated here" in done.stderr
