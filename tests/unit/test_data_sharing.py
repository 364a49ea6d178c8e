"""What else uses the training data, and which calls make them."""

from __future__ import annotations

import pytest

from tfdp.migrate.facts import read
from tfdp.migrate.facts.script import Script

SCRIPT = """
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)

def make(x, training=False):
    return tf.data.Dataset.from_tensor_slices(x).batch(8)

{data}
for x, y in {trained}:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(y - model(x)))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
{after}
"""


def script(data: str, trained: str, after: str = "") -> Script:
    return read(SCRIPT.format(data=data, trained=trained, after=after))


def switched(found: Script) -> list[str]:
    return [found.index.code(call) for call in found.switches("per-worker").calls]


@pytest.mark.parametrize(
    ("data", "trained", "calls"),
    [
        ("train, test = make(a), make(b)", "train", ["make(a)"]),
        ("train = make(a)\ntest = make(b)", "train", ["make(a)"]),
        ("both = make(a), make(b)", "both[1]", ["make(b)"]),
        ("train = make(a)", "train", []),
        ("train = make(a)\nothers = map(make, [b, c])", "train", ["make(a)"]),
    ],
)
def test_calls_that_make_training_data(data: str, trained: str, calls: list[str]) -> None:
    assert switched(script(data, trained)) == calls


@pytest.mark.parametrize(
    ("use", "refused"),
    [
        ("for x in train.take(1): print(x)", False),
        ("print(len(train), train.cardinality(), train.element_spec)", False),
        ("first = next(iter(train))", False),
        ("type(train)", False),
    ],
)
def test_looks_at_the_training_data(use: str, refused: bool) -> None:
    found = script("train = make(a)", "train", use)
    assert any(p.code == "TFDP010" for p in found.problems("per-worker")) == refused
