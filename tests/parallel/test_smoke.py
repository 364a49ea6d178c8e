"""The two whole scripts, migrated, on two processes: they train, one rank reports, one rank writes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "scripts"


def run(path: Path, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tfdp.runtime.launch", "-np", "2", str(path)],
        cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("name", ["after.py", "after_global.py"])
def test_smddp_mnist(name: str, tmp_path: Path) -> None:
    output = run(SCRIPTS / "smddp_mnist" / name, tmp_path)
    losses = [float(value) for value in re.findall(r"^\[0\] Epoch .* loss: (\S+)$", output, re.MULTILINE)]
    assert len(losses) == (10 if name == "after.py" else 20)
    assert sum(losses[-2:]) < sum(losses[:2]) / 2
    assert "[1] Epoch" not in output
    assert {p.name for p in (tmp_path / "checkpoints").iterdir()} >= {"checkpoint", "ckpt-1.index"}


def test_dtensor_mlp(tmp_path: Path) -> None:
    output = run(SCRIPTS / "dtensor_mlp" / "after.py", tmp_path)
    accuracy = [float(value) for value in re.findall(r"^\[0\] Testing .* accuracy: (\S+)$", output, re.MULTILINE)]
    assert len(accuracy) == 3
    assert accuracy[-1] > accuracy[0]
    assert "[1] Epoch" not in output
    assert {p.name for p in tmp_path.iterdir()} == {"Accuracy.png", "Cross entropy loss.png"}
