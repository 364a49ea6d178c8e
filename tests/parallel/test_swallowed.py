"""Errors of the runtime that a script catches: it does not go on without what they are about."""

import pytest

pytest.importorskip("tensorflow")

HEAD = """
import numpy as np, tensorflow as tf
import tfdp.runtime as dp
dp.init(shard_calls=True)

class Centred(tf.keras.layers.Layer):
    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], 1))
    def call(self, x):
        return (x - tf.reduce_mean(x, 0)) @ self.w

x = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")

def train(model, steps):
    optimizer = tf.keras.optimizers.SGD(0.1)
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return float(loss)
"""
# Nothing of the first one can be divided.
TRIALS = """
best = {}
for model in (Centred(), tf.keras.layers.Dense(1)):
    try:
        best[type(model).__name__] = train(model, 2)
    except Exception as error:
        print("a trial failed", type(error).__name__)
print("the best is", min(best, key=best.get))
"""
LAST = """
try:
    train(Centred(), 2)
except Exception:
    pass
print("all is done")
"""


@pytest.mark.parametrize(("script", "before", "never"), [(TRIALS, "a trial failed", "best"), (LAST, "all", "nothing")])
def test_a_script_that_catches_an_error_does_not_end_well(launch, script, before, never):
    done = launch(2, HEAD + script)
    assert done.returncode == 1, done.stderr
    assert "the script has caught an error of tfdp and gone on" in done.stderr
    assert "nothing in this script could be sharded" in done.stderr
    assert before in done.stdout
    assert never not in done.stdout


def test_errors_that_are_the_scripts_own_are_not_meant(launch):
    done = launch(2, HEAD + TRIALS.replace("Centred()", "tf.keras.layers.Conv2D(1, 3)"))
    assert done.returncode == 0, done.stderr
    assert "a trial failed ValueError" in done.stdout
    assert "the best is Dense" in done.stdout


CAUGHT = """
model, optimizer = tf.keras.Sequential([tf.keras.layers.Dense(1)]), tf.keras.optimizers.SGD(0.1)

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        y = model(x)
        tf.debugging.assert_less(tf.abs(y), 1e3)
        loss = tf.reduce_mean(y ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

for scale in (1.0, 1e6, 1.0):
    try:
        step(np.abs(x) * scale)
    except tf.errors.InvalidArgumentError:
        print("left out")
print("all is done")
"""


@pytest.mark.parametrize("scales", ["(1.0, 1e6, 1.0)", "(1.0, 1e6)"])
def test_no_script_goes_on_after_a_compiled_step_has_failed(launch, scales):
    done = launch(2, HEAD + CAUGHT.replace("(1.0, 1e6, 1.0)", scales))
    assert done.returncode == 1, done.stderr
    assert "left out" in done.stdout
    assert "a compiled step has failed at" in done.stderr


ASKED = """
@tf.function
def checked(x):
    tf.debugging.assert_less(tf.abs(x), 1e3)
    return tf.reduce_mean(x)

for scale in (1e6, 1.0):
    try:
        checked(x * scale)
    except tf.errors.InvalidArgumentError:
        print("left out")
train(tf.keras.layers.Dense(1), 2)
print("all is done")
"""


def test_compiled_functions_that_change_nothing_may_fail(launch):
    done = launch(2, HEAD + ASKED)
    assert done.returncode == 0, done.stderr
    assert "left out" in done.stdout
    assert "all is done" in done.stdout
