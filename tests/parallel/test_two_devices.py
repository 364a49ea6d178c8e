"""Steps whose variables are on a device that has no kernel for Python, as GPUs have none.

On a machine without one that is a second CPU; what is asked is whether TensorFlow chooses a device for each operation,
as it does for those of whole functions, and not for those of a function that runs where its variables are.
"""

import re

import pytest

HEAD = """
import tensorflow as tf
import tfdp.runtime as dp

processor = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
dp.init()
tf.debugging.set_log_device_placement(True)
with tf.device("CPU:1"):
    weights = tf.Variable(tf.ones([4]))


def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weights * (dp.rank() + 1.0))
    gradient = dp.DistributedGradientTape(tape).gradient(loss, weights)
    weights.assign_sub(0.1 * gradient)

"""
STEPS = {
    "step": "@tf.function\ndef step():\n    train()\n",
    "branch": "@tf.function\ndef step():\n    if tf.reduce_sum(weights) > 0.0:\n        train()\n",
    "loop": "@tf.function\ndef step():\n    for _ in tf.range(1):\n        train()\n",
}
CHECK = "\nstep()\nstep()\nprint('weights', [f'{each:.4f}' for each in weights.numpy()])\n"


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("kind", STEPS)
def test_devices_are_chosen_for_exchanges_by_themselves(launch, kind):
    done = launch(2, HEAD + STEPS[kind] + CHECK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("weights ['0.7000', '0.7000', '0.7000', '0.7000']") == 2, done.stdout
    placed = re.findall(r"\((\w+)\): \S*/device:(\w+:\d)", done.stdout + done.stderr)
    assert ("ReadVariableOp", "CPU:1") in placed
    assert "PyFunc" in {operation for operation, _ in placed}
