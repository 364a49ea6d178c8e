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


def test_what_it_prints_is_that_of_one_worker(tmp_path: Path) -> None:
    migrated = engine.migrate(str(SCRIPT), SCRIPT.read_bytes())
    assert not migrated.refused
    text = migrated.after.replace(b"Path(__file__).resolve().parent.parent", f'Path("{SCRIPT.parent.parent}")'.encode())
    (tmp_path / "train.py").write_bytes(text)
    printed = {}
    for ranks in (1, 2, 4):
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
    for ranks in (2, 4):
        assert printed[ranks] == pytest.approx(printed[1], abs=2e-6)


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
