"""What a failing script's last words are taken for, and how much room a proof needs."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("numpy")

from tfdp.migrate.verify import obstacles

PYTHON_FILE = """\
    data = np.load("digits.npz")
FileNotFoundError: [Errno 2] No such file or directory: 'digits.npz'
"""
TENSORFLOW_FILE = """\
tensorflow.python.framework.errors_impl.NotFoundError: {{function_node __wrapped__ReadFile}} \
/data/train.tfrecord; No such file or directory [Op:ReadFile]
"""
KERAS_DOWNLOAD = """\
Downloading data from https://example.org/mnist.npz
Exception: URL fetch failure on https://example.org/mnist.npz: None -- [Errno -3] Temporary failure in name resolution
"""
GPU_LIST = """\
  File "train.py", line 9, in <module>
    tf.config.experimental.set_memory_growth(gpus[0], True)
                                             ~~~~^^^
IndexError: list index out of range
"""
GPU_DEVICE = "InvalidArgumentError: Could not satisfy device specification '/job:localhost/device:GPU:0'. enable_soft"
ARGUMENTS = """\
usage: train.py [-h] --data DATA
train.py: error: the following arguments are required: --data
"""


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (PYTHON_FILE, "the script needs digits.npz, which is not there in "),
        (PYTHON_FILE.replace("'digits", "'/scratch/run/digits"), "the script needs digits.npz, which is not there in "),
        (TENSORFLOW_FILE, "the script needs /data/train.tfrecord, whose folder /data is not there: put it"),
        (PYTHON_FILE.replace("'digits", "'made/digits"), "needs made/digits.npz, whose folder made is not there in "),
        (KERAS_DOWNLOAD, "the script downloads https://example.org/mnist.npz, which does not come through here"),
        ("Downloading data from https://example.org/a.gz\n 8192/99999 [....", "downloads https://example.org/a.gz"),
        ("requests.exceptions.ConnectionError: refused", "the script fetches something over the network"),
        (GPU_LIST, "the script asks for a GPU, and TensorFlow sees none here"),
        (GPU_DEVICE, "the script asks for a GPU"),
        ("AssertionError: Not enough GPU hardware devices available", "the script asks for a GPU"),
        ("AssertionError: no GPU", "the script asks for a GPU"),
        ("ModuleNotFoundError: No module named 'wandb'", "the script needs the module wandb: install it"),
        (ARGUMENTS, "wants other arguments (the following arguments are required: --data): give them after --"),
    ],
)
def test_the_next_step(output: str, said: str) -> None:
    assert said in obstacles.hint(output, "/scratch/run")


@pytest.mark.parametrize(
    "output",
    [
        "",
        "No GPU found: training on the CPU\nValueError: Dimensions must be equal, but are 3 and 4",
        "    x = values[0]\n        ~~~~~~^^^\nIndexError: list index out of range",
        "Downloading data from https://example.org/a.gz\nValueError: bad rate",
    ],
)
def test_other_failures_are_left_to_speak_for_themselves(output: str) -> None:
    assert obstacles.hint(output) == ""


@pytest.mark.parametrize(
    ("free", "said"),
    [
        (10_000, ""),
        (6_000, "take 0.0 GB"),
        (3_200, "ask for at most 1 steps, or name a larger folder in TMPDIR"),
        (100, "room for 0.0 GB: name a larger folder in TMPDIR"),
    ],
)
def test_traces_that_do_not_find_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, said: str) -> None:
    (tmp_path / "step-00000.npz").write_bytes(b"x" * 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    text = obstacles.no_room(tmp_path, steps=3, processes=2)
    assert (said in text) if said else text == ""
