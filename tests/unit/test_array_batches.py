"""Which rows a step takes out of arrays, as facts: what the batch size is, and what the numbers around it count."""

from __future__ import annotations

import pytest

from tfdp.migrate import engine
from tfdp.migrate.facts import read
from tfdp.rules._base import Policy

SCRIPT = """
import numpy as np
import tensorflow as tf

x, y, size = np.load("x.npy"), np.load("y.npy"), 32
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
for {header}:
    {take}
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(xb) - yb))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""


def batches(header, take):
    script = read(SCRIPT.format(header=header, take=take))
    assert not script.problems("per-worker"), script.problems("per-worker")
    found = script.array_batches

    def texts(nodes):
        return [script.index.code(node) for node in nodes]

    return [texts(t.node for t in found.open), texts(found.divisors), texts(found.steps)]


SLICES = "xb, yb = x[i:i + size], y[i:i + size]"
NUMBERED = "xb, yb = x[i * size:(i + 1) * size], y[i * size:i * size + size]"
SHIFTED = "xb, yb = x[(i - 1) * size:i * size], y[i * size - size:i * size]"
DRAWN = "k = np.random.randint(0, 100, {}); xb, yb = x[k], y[k]"


@pytest.mark.parametrize(
    ("header", "take", "divisors", "steps"),
    [
        ("i in range(0, len(x), size)", SLICES, ["size"], []),
        ("i in range(0, len(x) - size + 1, size)", SLICES, ["size", "size"], []),
        ("n, i in enumerate(range(0, 1000, size))", SLICES, ["size"], []),
        ("i in range(0, 64, 32)", "xb, yb = x[i:i + 32], y[i:i + 32]", ["32"], []),
        ("i in range(len(x) // size)", NUMBERED, ["size"], []),
        ("i in range(1875)", NUMBERED, [], ["1875"]),
        ("i in range(1, len(x) // size + 1)", SHIFTED, ["size"], []),
        ("i in range(500)", DRAWN.format("size"), [], ["500"]),
        ("i in range(len(x) // size * 3)", DRAWN.format("(size,)"), ["size"], []),
    ],
)  # fmt: skip
def test_sizes_and_steps(header, take, divisors, steps):
    found = batches(header, take)
    assert len(found[0]) == (1 if "k =" in take else 2)
    assert found[1:] == [divisors, steps]


@pytest.mark.parametrize(
    ("header", "take"),
    [
        ("i in range(0, len(x), size)", "xb, yb = x[i:i + 16], y[i:i + 16]"),  # another step than the batch
        ("i in range(0, len(x), size)", "xb, yb = x[i], y[i]"),
        ("i in range(size)", NUMBERED),  # as many batches as examples in one
        ("i in range(1, 1876)", "xb, yb = x[(i - 1) * size:i * size], y[(i - 1) * size:i * size]"),
        ("i in [0, 32, 64]", SLICES),
        ("i in range(500)", "k = np.random.randint(0, 100); xb, yb = x[k:k + size], y[k:k + size]"),
        ("k in np.random.permutation(100)[:96].reshape(-1, size)", "xb, yb = x[k], y[k]"),
        ("i in range(500)", "k = np.random.permutation(100)[:96]; xb, yb = x[k.reshape(-1)], y[k.reshape(-1)]"),
        ("i in range(500)", "k = np.split(np.random.randint(0, 100, size), 2)[0]; xb, yb = x[k], y[k]"),
    ],
)
def test_what_is_not_understood_is_refused(header, take):
    script = read(SCRIPT.format(header=header, take=take))
    assert "TFDP010" in {p.code for p in script.problems("per-worker")}


@pytest.mark.parametrize(
    ("drawn", "refused"),
    [
        ("x[np.random.randint(0, 100, size)]", False),
        ("x[np.random.randint(0, 100, 5)]", True),
        ("x[np.random.choice(100, other)]", True),
        ("x[np.random.randint(0, 100, 4)].mean(axis=0)", True),
        ("x[np.random.permutation(100)[:other]]", True),
    ],
)
@pytest.mark.parametrize(
    ("header", "take"), [("i in range(0, len(x), size)", SLICES), ("i in range(500)", DRAWN.format("size"))]
)
def test_rows_that_are_drawn_beside_the_batch_are_no_batch(header, take, drawn, refused):
    source = SCRIPT.format(header=header, take=f"{take}; drawn = {drawn}; xb = xb - tf.reduce_mean(model(drawn))")
    source = source.replace("\nmodel =", "\nother = 32\nmodel =", 1)
    found = engine.migrate("train.py", source.encode(), Policy(batch="per-worker"))
    assert any("in a number of their own" in f.message for f in found.findings if f.refusal) == refused
