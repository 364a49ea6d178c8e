"""What needs a GPU. Listed in docs/not-run-here.md."""

import shutil
import subprocess

import pytest

pytestmark = pytest.mark.gpu
HEAD = "import tensorflow as tf\nimport tfdp.runtime as dp\ndp.init()\ndp.pin_gpu()\n"


def gpus() -> int:
    """How many GPUs NVIDIA's driver lists; asked without TensorFlow, which would take them."""
    if shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


def needs(count: int) -> pytest.MarkDecorator:
    return pytest.mark.skipif(gpus() < count, reason=f"needs {count} GPU(s); this machine has {gpus()}")


@needs(1)
def test_one_gpu_is_pinned(launch) -> None:
    body = (
        "seen = tf.config.get_visible_devices('GPU')\n"
        "assert len(seen) == 1, seen\n"
        "assert tf.config.experimental.get_memory_growth(seen[0])\n"
    )
    done = launch(1, HEAD + body)
    assert done.returncode == 0, done.stderr


@needs(2)
def test_each_worker_has_its_own(launch) -> None:
    done = launch(2, HEAD + "print('sees', tf.config.get_visible_devices('GPU')[0].name)\n")
    assert done.returncode == 0, done.stderr
    assert len({line.split("sees")[1] for line in done.stdout.splitlines() if "sees" in line}) == 2


@needs(1)
def test_gradients_on_a_gpu_are_averaged(launch) -> None:
    body = (
        "with tf.device('/GPU:0'):\n"
        "    v = tf.Variable([1.0, 2.0])\n"
        "with tf.GradientTape() as tape:\n"
        "    loss = tf.reduce_sum(v * (dp.rank() + 1.0))\n"
        "g = dp.DistributedGradientTape(tape).gradient(loss, v)\n"
        "assert g.numpy().tolist() == [1.0] * 2, g\n"
    )
    done = launch(1, HEAD + body)
    assert done.returncode == 0, done.stderr
