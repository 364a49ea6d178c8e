"""What a decision after each epoch is made from, and what becomes of it: left alone, rank 0's answer, or refused."""

from __future__ import annotations

import pytest

from tfdp.migrate import engine

_SCRIPT = """\
import collections
import dataclasses
import glob
import os
import time

import numpy as np
import tensorflow as tf

x = np.ones((640, 4), "float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
losses, table, counts = [], {{}}, np.zeros(3)
{before}

for epoch in range(3):
    for images, labels in dataset:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(images) - labels))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        {step}
    if {test}:
        break
"""

_CHANCE = {
    "clock": "time.time() % 2 > 1",
    "process": "os.getpid() % 2",
    "file": "os.path.exists('stop')",
    "file-by-tensorflow": "tf.io.gfile.exists('stop')",
    "clock-of-tensorflow": "tf.timestamp() > 10.0",
    "address": "id(model) % 2",
    "draw": "np.random.rand() > 0.5",
    "draw-of-keras": "tf.keras.backend.random_uniform(()) > 0.5",
    "content-of-a-file": "open('stop').read() == '1'",
    "number-of-files": "len(glob.glob('*.stop')) > 0",
}
_EQUAL = {
    "epoch": "epoch > 1",
    "number-of-losses": "len(losses) > 50",
    "type": "isinstance(loss, float)",
    "gradients": "tf.linalg.global_norm(gradients) < 1e-3",
    "table": "{0: True}.get(epoch, False)",
    "number-of-chosen-numbers": "len([n for n in range(10) if n % 3]) > epoch",
}
_LOCAL = {
    "number-of-chosen-losses": ("", "losses.append(float(loss))", "len([each for each in losses if each > 3]) > 2"),
    "number-of-kept-losses": (
        "",
        "losses.append(float(loss))",
        "len(list(filter(lambda each: each > 3, losses))) > 2",
    ),
    "number-of-letters": ("", "pass", "len(str(float(loss))) > 8"),
    "number-of-rows-by-a-mask": ("", "pass", "len(images[images > 0.5]) > 8"),
    "shape-by-a-mask": ("", "pass", "tf.boolean_mask(images, images > 0.5).shape[0] > 8"),
    "list-of-a-list": ("", "losses.append(float(loss))", "sorted(losses)[0] > sorted(losses)[1] + 1"),
    "exception": (
        "def check(value):\n    try:\n        assert value < 3\n        return False\n"
        "    except AssertionError:\n        return True",
        "pass",
        "check(float(loss))",
    ),
    "return-out-of-a-loop": (
        "def check(value):\n    for _ in range(int(value)):\n        return True\n    return False",
        "pass",
        "check(float(loss))",
    ),
    "count-of-a-loop": (
        "def check(value):\n    k = 0\n    for _ in range(int(value)):\n        k = k + 1\n    return k > 2",
        "pass",
        "check(float(loss))",
    ),
    "field": (
        "@dataclasses.dataclass\nclass Stats:\n    loss: float = 0.0\n",
        "stats = Stats(float(loss))",
        "stats.loss > 3",
    ),
    "generator": (
        "def squares(value):\n    for k in range(3):\n        yield value * k",
        "pass",
        "[s for s in squares(float(loss))][1] > 3",
    ),
    "property": (
        "class Meter:\n    def __init__(self):\n        self.total, self.n = 0.0, 0\n"
        "    def update(self, value):\n        self.total += value\n        self.n += 1\n"
        "    @property\n    def mean(self):\n        return self.total / self.n\n\nmeter = Meter()",
        "meter.update(float(loss))",
        "meter.mean > 3",
    ),
    "method": (
        "class Meter:\n    def __init__(self):\n        self.values = []\n"
        "    def update(self, value):\n        self.values.append(value)\n"
        "    def last(self):\n        return self.values[-1]\n\nmeter = Meter()",
        "meter.update(float(loss))",
        "meter.last() > 3",
    ),
    "number-through-a-function": (
        "def put(values, value):\n    values.append(value)",
        "put(losses, float(loss))",
        "max(losses) > 3",
    ),
}


def outcome(before: str, step: str, test: str, batch: str = "per-worker") -> str:
    source = _SCRIPT.format(before=before, step=step, test=test)
    result = engine.migrate("script.py", source.encode(), batch, shard="input")
    if result.refused:
        return "refused"
    text = result.after.decode()
    if f"if dp.agree({test}):" in text:
        return "agreed"
    return "left" if f"if {test}:" in text and "dp.average_value(" not in text else text


@pytest.mark.parametrize("test", _CHANCE.values(), ids=list(_CHANCE))
def test_what_chance_decides_is_decided_by_rank_0(test: str) -> None:
    assert outcome("", "pass", test) == "agreed"


@pytest.mark.parametrize("test", _EQUAL.values(), ids=list(_EQUAL))
def test_what_is_equal_is_left_alone(test: str) -> None:
    assert outcome("", "losses.append(float(loss))", test) == "left"


@pytest.mark.parametrize("case", _LOCAL.values(), ids=list(_LOCAL))
def test_what_each_worker_would_decide_for_itself_is_averaged_or_refused(case: tuple[str, str, str]) -> None:
    found = outcome(*case)
    assert found == "refused" or "dp.average_value(" in found


def test_a_value_is_averaged_once() -> None:
    text = outcome("", "losses.append(float(loss))", "max(float(loss), 0.0) > 3")
    assert "if max(dp.average_value(float(loss)), 0.0) > 3:" in text


def test_a_value_that_the_test_names_is_averaged() -> None:
    text = outcome("", "pass", "(last := float(loss)) > 3")
    assert "if (last := dp.average_value(float(loss))) > 3:" in text


@pytest.mark.parametrize(
    "test",
    [
        "time.time() % 2 > 1 and float(loss) > 3",
        "float(loss) > 3 if time.time() % 2 > 1 else epoch > 2",
        "any(float(loss) > k for k in range(3) if time.time() % 2 > 1)",
    ],
)
def test_nothing_is_averaged_where_chance_decides_whether_it_is_asked(test: str) -> None:
    assert outcome("", "pass", test) == "refused"


def test_a_list_is_averaged_and_not_its_elements() -> None:
    text = outcome("", "losses.append(float(loss))", "len([each for each in losses if each > 3]) > 2")
    assert "if len([each for each in dp.average_value(losses) if each > 3]) > 2:" in text
