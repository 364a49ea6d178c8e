"""`tfdp verify` as a user runs it: real processes, on a script without Keras."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate import example

SCRIPT = """\
import sys
import threading

import numpy as np
import tensorflow as tf

x = np.linspace(-1, 1, 96).astype(np.float32).reshape(48, 2)
y = np.sum(x, 1, keepdims=True) ** 2
w = tf.Variable(tf.random.normal([2, 1]), name="w")
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(48).repeat().batch(4).take(40)
if len(sys.argv) > 1:
    print(open(sys.argv[1]).read())
for xs, ys in data:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((xs @ w - ys) ** 2)
    gradient = tape.gradient(loss, w)
    w.assign_sub(0.1 * gradient)
open("weights.txt", "w").write(str(w.numpy()))
threading.Thread(target=threading.Event().wait).start()  # keeps the process for ever
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_an_original_is_proved_and_nothing_is_left_behind(tfdp, script: Path) -> None:
    (script.parent / "note.txt").write_text("an argument of the script's own")
    done = tfdp("verify", "train.py", "--steps", "20", "--json", "--html", "page.html", "--", "note.txt")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["verdict"], found["steps_compared"], found["options"]["arguments"]) == ("proved", 20, "note.txt")
    assert [variable["variable"] for variable in found["variables"]] == ["w (2x1)"]
    assert [set(step["losses"][0]) for step in found["steps"]] == [{"reference", "migrated"}] * 20
    assert found["largest"]["gradient"] <= found["limits"]["gradient"]
    assert "the reference in one process: step 0 of 20" in done.err
    assert "the migrated script on 2 processes: step 0 of 20" in done.err
    assert sorted(path.name for path in script.parent.iterdir()) == ["note.txt", "page.html", "train.py"]
    assert script.read_text() == SCRIPT


def test_who_ends_the_command_ends_its_processes_and_leaves_nothing(tmp_path: Path) -> None:
    told, room = tmp_path / "told", tmp_path / "room"
    os.mkfifo(told)
    room.mkdir()
    path = tmp_path / "train.py"
    waits = f"import os, signal\nopen({str(told)!r}, 'w').write(str(os.getpid()))\nsignal.pause()\n"
    path.write_text(SCRIPT.replace("import tensorflow as tf\n", f"import tensorflow as tf\n{waits}"))
    command = [sys.executable, "-m", "tfdp.migrate", "verify", str(path)]
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(room)}, stderr=subprocess.DEVNULL)
    child = int(told.read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert list(room.iterdir()) == []


def test_a_wrong_migrated_script_is_not_proved(tfdp, script: Path) -> None:
    """Each script has a module beside it that the other lacks."""
    home = script.parent / "original"
    home.mkdir()
    for folder, module in ((home, "before"), (script.parent, "after")):
        (folder / f"{module}.py").write_text("")
        (folder / "train.py").write_text(SCRIPT.replace("import sys\n", f"import sys\n\nimport {module}\n"))
    assert tfdp("migrate", "--batch", "per-worker", "train.py").code == 0
    script.write_text(script.read_text().replace("dp.scale_lr(0.1)", "0.1"))
    done = tfdp("verify", "train.py", "--against", "original/train.py", "--steps", "2")
    assert done.code == 1, done.err
    first, *rest = done.out.decode().splitlines()
    assert first == "train.py: NOT PROVED: does NOT train the same model"
    assert any("update of w (2x1) differs by 0.5" in line for line in rest)


def test_an_example_is_proved_against_its_backup_and_a_crash_is_no_disproof(tfdp, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(example.text())
    assert tfdp("migrate", "--shard", "input", "--batch", "global", "--backup", "train.py").code == 0
    done = tfdp("verify", "train.py", "--steps", "1")
    assert done.code == 0, done.err
    said = done.out.decode()
    assert said.startswith("train.py: PROVED: trains the same model\n  original: train.py.orig\n"), said

    done = tfdp(
        "verify", "train.py.orig", "--shard", "input", "--batch", "global", "--json", "--", "--batch-size", "33"
    )
    found = json.loads(done.out)
    line = next(n for n, each in enumerate(example.text().splitlines(), 1) if b".batch(args.batch_size)" in each)
    assert (done.code, found["exit"], found["verdict"]) == (2, 2, "could not be compared")
    assert found["reason"].startswith(
        f"every rank failed in step 0 at train.py.orig:{line}: ValueError: the batch size 33 "
    )
    assert found["failed_run"]["place"] == f"train.py.orig:{line}"
    assert "datasets.py" in found["failed_run"]["traceback"]
    assert "datasets.py" not in found["failed_run"]["short"], "the script's own frames alone"
