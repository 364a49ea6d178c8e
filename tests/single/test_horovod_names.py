"""The modules that stand for Horovod's and SMDDP's have the names that are listed; the lists need no TensorFlow."""

import importlib
import subprocess
import sys

import pytest

from tfdp.runtime.horovod import MODULES
from tfdp.runtime.smdistributed import NAMES


@pytest.mark.parametrize("module", [*MODULES, "smdistributed.dataparallel.tensorflow"])
def test_every_name_is_there(module: str) -> None:
    found = importlib.import_module(f"tfdp.runtime.{module}")
    names = MODULES.get(module, NAMES)
    assert all(hasattr(found, name) for name in names)
    assert set(getattr(found, "__all__", names)) == set(names) or module in ("horovod", "horovod.tensorflow.mpi_ops")


def test_the_lists_need_no_tensorflow() -> None:
    code = "import sys, tfdp.runtime.horovod, tfdp.runtime.smdistributed; assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_process_is_left_as_it_is() -> None:
    code = (
        "import tensorflow as tf, tfdp.runtime.horovod.tensorflow as hvd\nhvd.init()\n"
        "assert (hvd.rank(), hvd.size()) == (0, 1)\nx = tf.constant([1.0, 3.0])\n"
        "assert hvd.allreduce(x).numpy().tolist() == hvd.allreduce(x, average=False).numpy().tolist() == [1, 3]\n"
        "assert hvd.allgather_object(5) == [5] and hvd.broadcast_object('a') == 'a'\n"
        "assert float(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.5)).learning_rate) == 0.5\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
