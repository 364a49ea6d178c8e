"""Whether a value changes with the number of the step has one answer, whoever asks: here for values of one step."""

from __future__ import annotations

import libcst as cst
import pytest

from tfdp.migrate.facts import read
from tfdp.migrate.facts.program import Later, StepNumbers

_SCRIPT = """\
import argparse, math, random
import numpy as np
import tensorflow as tf
from elsewhere import foreign

args = argparse.ArgumentParser().parse_args()
x = np.ones((640, 4), "float32")
train = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
RATE, WARMUP = 0.99, foreign()
steps, falling, total, mean, turn, epochs, other = 0, 1.0, 0.0, 0.0, 0, 0, 0
stepped = tf.Variable(0)
losses, table = [], {{"a": 1}}
counted, followed, trained, unseen = tf.Variable(0), tf.Variable(0.0), tf.Variable(0.0), tf.Variable(0.0)

class Config:
    scale = 2

class Meter:
    def __init__(self, size):
        self.seen, self.total, self.size = 0, 0.0, size
    def update(self, value):
        self.seen += 1
        self.total += value
    def reset(self):
        self.seen = 0

class Ramp(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.model.beta.assign(batch / 1000)

meter, config = Meter(16), Config()

def weight(step, most=100):
    if step > most:
        return 1.0
    return step / most

def halved(value):
    return value / 2

for epoch in range(3):
    epochs += 1
    begun = 0
    for number, (xb, yb) in enumerate(train):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(xb) - yb) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        steps += 1
        falling = falling * RATE
        total += loss
        mean = 0.9 * mean + 0.1 * loss
        turn += 1
        if turn == 4:
            turn = 0
        again = 1.0
        for part in range(3):
            again = again * 0.5
        if steps % 2:
            other += steps
        losses.append(loss)
        meter.update(loss)
        counted.assign_add(1)
        stepped.assign(stepped + 1)
        followed.assign(counted / 1000)
        trained.assign(trained + loss)
        scaled = xb / 255.0
        result = {expression}
    late = steps
"""

_COUNT, _SUM, _OTHER = (frozenset({reason}) for reason in (Later.COUNT, Later.SUM, Later.OTHER))
_FIXED = frozenset[Later]()


def answer(expression: str) -> frozenset[Later]:
    script = read(_SCRIPT.format(expression=expression))
    [made] = [d.value for d in script.index.definitions[script.program.entry.module]["result"]]
    assert isinstance(made, cst.BaseExpression)
    return StepNumbers(script.origins, [loop.loop for loop in script.loops]).of(made)


@pytest.mark.parametrize(
    "expression",
    [
        *("1", "RATE", "WARMUP", "args.steps", "epoch", "epochs", "again", "meter.size", "config.scale", "xb.shape[0]"),
        *("len(xb)", "halved(RATE)", "math.sqrt(RATE)", "table['a']", "tf.constant(0.1)", "begun", "x.shape", "part"),
    ],
)
def test_made_of_numbers_and_of_what_is_set_outside_the_steps(expression: str) -> None:
    assert answer(expression) == _FIXED


@pytest.mark.parametrize(
    "expression",
    [
        *("number", "steps", "falling", "turn", "other", "late", "1 / (1 + steps)", "min(1.0, steps / WARMUP)"),
        *("RATE**number", "tf.cast(steps, tf.float32)", "weight(steps)", "weight(number, most=10)", "meter.seen"),
        *(
            "stepped",
            "counted",
            "counted.numpy()",
            "followed",
            "optimizer.iterations",
            "steps % 10 == 0",
            "(epoch, number)",
        ),
        *("optimizer.iterations.numpy() / 10", "[0.1, steps][0] if number else steps", "halved(halved(falling))"),
    ],
)
def test_a_function_of_the_number_of_the_step(expression: str) -> None:
    assert answer(expression) == _COUNT


@pytest.mark.parametrize(
    "expression", ["xb", "loss", "scaled", "model(xb)", "foreign(RATE)", "random.random()", "losses", "np.mean(losses)"]
)
def test_made_of_the_batch_or_of_what_is_not_known(expression: str) -> None:
    assert answer(expression) == _OTHER


@pytest.mark.parametrize(
    "expression", ["total", "mean", "total / steps", "float(total) / (number + 1)", "meter.total", "trained", "unseen"]
)
def test_made_of_what_it_was_and_of_the_batch(expression: str) -> None:
    assert answer(expression) == _SUM | _OTHER


@pytest.mark.parametrize(
    "expression", ["loss * steps", "loss / steps", "foreign(steps)", "unknown.iterations", "steps * xb"]
)
def test_a_counter_with_others(expression: str) -> None:
    assert answer(expression) == _COUNT | _OTHER
