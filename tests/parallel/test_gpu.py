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


@needs(2)
def test_nccl_is_chosen_and_combines_what_is_on_the_gpus(launch) -> None:
    body = (
        "from tfdp.runtime.job import current\n"
        "assert current().transport.name == 'nccl'\n"
        "dtypes = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)\n"
        "wanted = {dp.Average: 1, dp.Sum: 3, dp.Min: 1, dp.Max: 2, dp.Product: 2}\n"
        "for way in (lambda function: function, tf.function):\n"
        "    for op, want in wanted.items():\n"
        "        mine = [tf.fill([3], tf.cast(dp.rank() + 1, dtype)) for dtype in dtypes]\n"
        "        found = way(lambda: dp.grouped_allreduce(mine, op))()\n"
        "        exact = 1.5 if op is dp.Average else want\n"
        "        for each in found:\n"
        "            assert set(each.numpy()) == {exact if each.dtype.is_floating else want}, (op, each)\n"
        "    rows = way(lambda: dp.allgather(tf.fill([dp.rank() + 1, 2], dp.rank() == 1)))()\n"
        "    assert rows.numpy().tolist() == [[False] * 2] + [[True] * 2] * 2, rows\n"
        "    assert way(lambda: dp.broadcast(tf.cast(dp.rank(), tf.bfloat16), 1))().numpy() == 1\n"
        "assert dp.broadcast_object({'rank': dp.rank()}, 1) == {'rank': 1}\n"
    )
    done = launch(2, HEAD + body)
    assert done.returncode == 0, done.stderr


@needs(2)
def test_a_killed_rank_does_not_hang_nccl(launch) -> None:
    body = (
        "import os, signal\n"
        "dp.allreduce(tf.ones([3]))\n"
        "if dp.rank() == 1:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "dp.allreduce(tf.ones([3]))\n"
    )
    done = launch(2, HEAD + body)
    assert done.returncode == 137, done.stderr
    assert "rank 0 was in allreduce Average of float32[3] at" in done.stderr
