"""Scripts that lead back to where they came from, and texts that are nested deeply: each question about them ends."""

from __future__ import annotations

import sys

import pytest

from tfdp.migrate import engine, nesting
from tfdp.migrate.files import UnreadableSource
from tfdp.migrate.one_file import attempt
from tfdp.migrate.report.outcome import Failure
from tfdp.rules._base import Policy

_TAPE = """\
import functools
import os
import pathlib
import numpy as np
import tensorflow as tf

{before}

data = {data}
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.SGD(0.1)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
for epoch in range(3):
    for images, labels in data:
        with tf.GradientTape() as tape:
            loss = {loss}
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    {after}
"""
_FIT = """\
import numpy as np
import tensorflow as tf

{before}
x, y = np.zeros((640, 4)), np.zeros((640, 10))
model = {model}
model.compile("sgd", {loss})
model.fit(x, y, epochs=2)
{after}
"""
_COUNT = """\
def count(folder):
    found = 0
    for path in folder.iterdir():
        if path.is_dir():
            found += count(path)
        else:
            found += 1
    return found

n = count(pathlib.Path("images"))
"""
_MASKED = "tf.keras.Sequential([tf.keras.layers.Masking(), {}, tf.keras.layers.Dense(10)])"


def _tape(before: str, data: str = "", loss: str = "loss_fn(labels, model(images))", after: str = "pass") -> str:
    data = data or "tf.data.Dataset.from_tensor_slices((np.zeros((640, 4)), np.zeros(640))).batch(32)"
    return _TAPE.format(before=before, data=data, loss=loss, after=after)


def _fit(before: str, model: str = "tf.keras.Sequential([tf.keras.layers.Dense(10)])", **given: str) -> str:
    return _FIT.format(before=before, model=model, **{"loss": '"mse"', "after": "", **given})


# Each of these asked a question that came back to itself.
_CIRCLES = {
    "files counted by a function that calls itself": _tape(_COUNT, after="print(n)"),
    "such a number in a condition": _tape(_COUNT, after="if n > 3:\n        model.save_weights('w')"),
    "an entry that is a table again": _tape("d = {}\nfor _ in range(3):\n    d = d['next']", data="d"),
    "the rest of a list": _tape("first = rest = [1]\nfor _ in range(3):\n    first, rest = rest", data="first"),
    "an iterator of itself": _tape("def start():\n    global it\n    it = iter(it)", data="it"),
    "an attribute handed to what sets it": _tape(
        "class Kept:\n    def __init__(self):\n        self.items = []\n\n    def put(self, items):\n"
        "        self.items = items\n\n    def again(self):\n        self.put(self.items)\n\nkept = Kept()",
        after="if kept.items[0] > 3:\n        break",
    ),
    "a class that is defined again": _tape(
        "class A:\n    pass\n\nclass B(A):\n    pass\n\nclass A(B):\n    pass\n\ndef size():\n    return A().size()",
        after="print(size())",
    ),
    "classes that are bases of each other": _tape(
        "class A(B):\n    pass\n\nclass B(A):\n    pass\n\nn = A().size()", after="print(n)"
    ),
    "a path of itself": _tape(
        "def up(path):\n    return up(path) / '..'\n\nup(pathlib.Path('a')).mkdir()",
        after="print(up(pathlib.Path('b')))",
    ),
    "losses in a list of themselves": _fit(
        "def mse(a, b):\n    return tf.reduce_mean(tf.square(a - b))\n\nlosses = [mse]\nfor _ in range(3):\n"
        "    losses = [losses, mse]",
        loss="loss=losses",
    ),
    "losses by a function that calls itself": _fit(
        "def losses(n):\n    return [losses(n - 1), 'mse'] if n else ['mse']", loss="loss=losses(2)"
    ),
    "added losses by one": _fit(
        "def losses(n):\n    return [losses(n - 1), tf.reduce_mean(x)]",
        model="tf.keras.Sequential([tf.keras.layers.Dense(10)])\nmodel.add_loss(losses(2))",
    ),
    "a layer around itself": _fit(
        "def layer(n):\n    return tf.keras.layers.Bidirectional(layer(n))", model=_MASKED.format("layer(3)")
    ),
    "layers by each other's names": _fit(
        "a = tf.keras.layers.Masking()\nfor _ in range(3):\n    b = a\n    a = b",
        model="tf.keras.Sequential([a, tf.keras.layers.Dense(10)])",
    ),
    "a shape of itself": _tape(
        "def shape(of):\n    return shape(of).numpy()",
        loss="tf.reduce_sum(loss_fn(labels, model(images))) / shape(images)",
    ),
    "many ways back": _tape(
        "def f(n):\n"
        + "".join(f"    if n == {i}:\n        return f(n - {i})\n" for i in range(1, 7))
        + "    return n, n\n\nn, m = f(3)",
        after="if n > 3:\n        break",
    ),
}


@pytest.mark.parametrize("script", _CIRCLES.values(), ids=_CIRCLES.keys())
@pytest.mark.parametrize("batch", ["per-worker", "global"])
def test_a_question_that_comes_back_to_itself_is_answered(script: str, batch: engine.Batch) -> None:
    before = sys.getrecursionlimit()
    engine.migrate("train.py", script.encode(), Policy(batch=batch))
    assert sys.getrecursionlimit() == before


def test_a_function_that_calls_itself_with_equal_values_gives_equal_ones() -> None:
    function = "def half(n):\n    return 1 if n < 2 else half(n // 2) + 1"
    migration = engine.migrate("train.py", _tape(function, after="if epoch > half(9):\n        break").encode())
    assert not migration.refused
    assert migration.changed


@pytest.mark.parametrize(
    "count",
    [
        "def count(folder):\n    return sum(count(p) if p.is_dir() else 1 for p in folder.iterdir())\n\n"
        "n = count(pathlib.Path('images'))",
        _COUNT,
    ],
    ids=["summed", "counted up"],
)
def test_a_number_of_files_is_rank_0s(count: str) -> None:
    migration = engine.migrate("train.py", _tape(count, after="if n > epoch:\n        break").encode())
    assert not migration.refused
    assert b"if n > epoch:" in migration.after


_DEEP = {
    "400 summands": "n = " + " + ".join(["1"] * 400),
    "150 branches": "k = len(os.listdir())\nif k == 0:\n    n = 0\n"
    + "".join(f"elif k == {i}:\n    n = {i}\n" for i in range(1, 150)),
    "200 calls in a chain": "n = len('a'" + ".strip()" * 200 + ")",
    "3000 elements": "n = [[" + ", ".join(map(str, range(3000))) + "], [1]]",
    "400 conditions": "n = 1 if " + " and ".join(["np.ones(1).all()"] * 400) + " else 2",
    "400 texts": "n = len(" + " ".join(["'a'"] * 400) + ")",
    "400 layers of one name": "n = tf.keras.Input((4,))\n" + "n = tf.keras.layers.Dense(4)(n)\n" * 400,
}


_ROOMY = pytest.mark.skipif(nesting.DEEPEST < 1000, reason="before Python 3.11, more than 250 levels are refused")


@_ROOMY
@pytest.mark.parametrize("before", _DEEP.values(), ids=_DEEP.keys())
def test_deep_texts_are_migrated(before: str) -> None:
    migration = engine.migrate("train.py", _tape(before, after="print(n)").encode())
    assert not migration.refused
    assert before in migration.after.decode()


_TOO_DEEP = {
    "summands": ("n = (\n    1" + "\n    + 1" * 1200 + "\n)", 7, "the expression in this statement has 12"),
    "branches": (
        "k = 1\nif k == 0:\n    n = 0\n" + "".join(f"elif k == {i}:\n    n = {i}\n" for i in range(1100)),
        8,
        "this if/elif chain has 11",
    ),
    "conditions": ("n = [\n    1 if " + " and ".join(["model"] * 1100) + " else 2]", 7, "the expression in this"),
    "too many summands for Python": ("m = [1, 2]\nn = 1" + " + 1" * 20_000 + "\no = 3", 8, "Python's own parser"),
    "too many branches for Python": (
        "m = [1, 2]\nif m:\n    n = 0\n" + "".join(f"elif m == {i}:\n    n = {i}\n" for i in range(20_000)),
        8,
        "Python's own parser",
    ),
}


@_ROOMY
@pytest.mark.parametrize(("before", "line", "reason"), _TOO_DEEP.values(), ids=_TOO_DEEP.keys())
def test_what_is_nested_too_deeply_is_named_with_its_line(before: str, line: int, reason: str) -> None:
    with pytest.raises(UnreadableSource, match=reason) as caught:
        engine.migrate("train.py", _tape(before).encode())
    assert caught.value.line == line


def test_a_circle_that_is_not_foreseen_names_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(engine, "make_plan", endless)
    found = attempt("train.py", lambda: engine.migrate("train.py", _tape("n = 1\n\n" + _COUNT).encode()))
    assert isinstance(found, Failure)
    assert (found.line, found.column) == (9, 1)
    assert "`count`, which calls itself" in found.reason
    found = attempt("train.py", lambda: engine.migrate("train.py", _tape("n = 1").encode()))
    assert isinstance(found, Failure)
    assert "comes to no end" in found.reason
    assert found.trace


def test_the_deepest_text_that_is_taken_leaves_room() -> None:
    terms = nesting.DEEPEST - 20
    migration = engine.migrate("train.py", _tape("n = " + " + ".join(["1"] * terms), after="print(n)").encode())
    assert migration.changed
