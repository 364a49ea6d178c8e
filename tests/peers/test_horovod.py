"""Scripts under Horovod 0.28.1 itself, and migrated, on the same TensorFlow and data: the same weights.

`make peers` builds the environment; without it these tests are skipped.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tfdp.migrate import engine

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
PEER = ROOT / os.environ.get("TFDP_PEER", ".peers/horovod")
BIN = PEER / "bin"
LIMIT_SECONDS = 240

pytestmark = pytest.mark.skipif(not (PEER / ".installed").exists(), reason="Horovod is not built here: make peers")


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT / ".editable")},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def weights(folder: Path) -> list[np.ndarray]:
    with np.load(folder / "weights.npz") as file:
        return [file[name] for name in file.files]


@pytest.mark.parametrize(
    ("script", "args", "np_", "limit"),
    [
        ("horovod_tape", (), 2, 1e-6),
        ("horovod_tape", (), 3, 1e-6),
        ("horovod_fit", (), 2, 1e-6),
        # It adds up in float16, the runtime in float32, which is rounded once.
        ("horovod_fit", ("--fp16",), 2, 2e-3),
        ("horovod_words", (), 2, 1e-6),
        ("horovod_words", (), 3, 1e-6),
        ("horovod_words", ("--passes",), 2, 1e-6),
        ("horovod_parts", (), 2, 1e-6),
        ("horovod_parts", (), 3, 1e-6),
    ],
)
def test_a_script_trains_as_under_horovod(
    script: str, args: tuple[str, ...], np_: int, limit: float, tmp_path: Path
) -> None:
    names = tmp_path / "names"
    names.mkdir()
    (tmp_path / "scripts").mkdir()
    shutil.copytree(FIXTURES / "scripts" / "data", tmp_path / "scripts" / "data")
    original = (FIXTURES / "names" / f"{script}.py").read_bytes()
    migrated = engine.migrate(f"{script}.py", original)
    assert not migrated.refused
    assert migrated.changed
    starts = {
        "horovod": ([str(BIN / "horovodrun"), "--gloo", "-np"], original),
        "tfdp": ([str(BIN / "python"), "-m", "tfdp.runtime.launch", "-np"], migrated.after),
    }
    found = {}
    for name, (start, text) in starts.items():
        path = names / f"{name}_train.py"
        path.write_bytes(text)
        folder = tmp_path / name
        folder.mkdir()
        python = [str(BIN / "python")] if name == "horovod" else []
        run([*start, str(np_), *python, str(path), *args], folder)
        found[name] = weights(folder)
    least = 1e-2 * max(map(np.linalg.norm, found["horovod"]))  # what is near nought has the rounding of larger numbers
    for ours, theirs in zip(found["tfdp"], found["horovod"], strict=True):
        assert np.linalg.norm(ours - theirs) <= limit * max(np.linalg.norm(theirs), least)


SIGNATURES = """
import importlib, inspect, json
from tfdp.runtime.horovod import MODULES
found = {}
for module, names in MODULES.items():
    for name in names if module != "horovod" else ():
        for package in ("", "tfdp.runtime."):
            thing = getattr(importlib.import_module(package + module), name, None)
            if callable(thing):
                known = [each.name for each in inspect.signature(thing).parameters.values()]
                found.setdefault(f"{module}.{name}", []).append(known)
print(json.dumps(found))
"""
# Theirs takes anything and looks later; those of `horovod.keras` are a later subset of what they were before.
OTHERS = {"init", "horovod.keras.DistributedOptimizer", "MetricAverageCallback"}


def test_arguments_are_those_of_horovod_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "signatures.py").write_text(SIGNATURES)
    found = json.loads(run([str(BIN / "python"), "signatures.py"], tmp_path).splitlines()[-1])
    assert len(found) > 60
    differ = {name: both for name, both in found.items() if len(both) == 2 and both[0] != both[1]}
    assert {name for name in differ if name not in OTHERS and name.rpartition(".")[2] not in OTHERS} == set()


def test_another_rate_would_be_seen(tmp_path: Path) -> None:
    """The comparison above tells a rate that is not scaled."""
    original = (FIXTURES / "names" / "horovod_words.py").read_bytes()
    found = []
    for name, text in (("as it is", original), ("other", original.replace(b"SGD(0.05)", b"SGD(0.025)"))):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_bytes(engine.migrate("train.py", text).after)
        run([str(BIN / "python"), "-m", "tfdp.runtime.launch", "-np", "2", "train.py"], folder)
        found.append(weights(folder))
    assert any(np.linalg.norm(one - other) > 1e-3 * np.linalg.norm(other) for one, other in zip(*found, strict=True))
