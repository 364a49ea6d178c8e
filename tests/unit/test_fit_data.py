"""What a model is fitted to, and what the reference of a fit is made of."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tfdp.migrate.facts import read
from tfdp.migrate.facts.keras import FitData
from tfdp.migrate.verify.reference import NoReferenceError, reference

HEAD = """\
import numpy as np
import tensorflow as tf
from tensorflow import keras
import loader
(x, y), test = keras.datasets.mnist.load_data()
model = keras.Sequential([keras.layers.Dense(10)])
model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
"""
SCRIPTS = [
    Path(__file__).parents[2] / "fixtures" / "scripts" / f"fit_{name}" for name in ("folds", "split", "weighted")
]


def only(source: str) -> FitData:
    (found,) = read(HEAD + source).fitted.data
    return found


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("model.fit(x, y)", "arrays"),
        ("model.fit(x)", "arrays"),
        ("model.fit([x, x], epochs=2)", "arrays"),
        ("model.fit(loader.arrays(), batch_size=8)", "arrays"),
        ("model.fit(loader.x, y=loader.y)", "arrays"),
        ("model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8))", "chains"),
        ("model.fit(loader.dataset(), epochs=2)", "batches"),
        ("model.fit(((a, b) for a, b in loader.batches()), epochs=2)", "batches"),
        ("model.fit(keras.preprocessing.image.ImageDataGenerator().flow(x, y, batch_size=8))", "batches"),
    ],
)
def test_kinds_of_data(source: str, kind: str) -> None:
    found = only(source)
    assert [name for name in ("arrays", "chains", "batches") if getattr(found, name)] == [kind]
    assert not found.sharded


@pytest.mark.parametrize(
    "source", ["model.fit(dp.shard(x), dp.shard(y))", "model.fit(dp.shard_batches(loader.get()))", "model.fit(data)"]
)
def test_data_that_are_sharded_already(source: str) -> None:
    dataset = "data = dp.shard(tf.data.Dataset.from_tensor_slices((x, y))).batch(8)\n"
    assert only("import tfdp.runtime as dp\n" + dataset + source).sharded


def test_what_is_given_as_arrays_is_whole_elsewhere() -> None:
    script = read(HEAD + "data = loader.batches()\nmodel.fit(data, steps_per_epoch=len(data))\n")
    assert [(steps.keyword, steps.down) for steps in script.steps.of_fits] == [("steps_per_epoch", True)]


@pytest.mark.parametrize("batch", ["per-worker", "global"])
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_references_are_python(path: Path, batch: str) -> None:
    text = reference(str(path), (path / "before.py").read_bytes(), 3, batch).decode()
    ast.parse(text)
    assert "tfdp.runtime" not in text


def test_a_script_outside_the_vocabulary_has_no_reference_on_sharded_input() -> None:
    with pytest.raises(NoReferenceError, match="`import loader` is not in the vocabulary"):
        reference("a.py", f"{HEAD}model.fit(x, y)\n".encode(), 2, "global")


def test_the_reference_of_arrays_takes_the_global_batch() -> None:
    source = (
        HEAD.replace("import loader\n", "") + "model.fit(x, y, validation_split=0.1)\nmodel.fit(x, y, batch_size=8)\n"
    )
    first, second = reference("a.py", source.encode(), 2, "per-worker").decode().splitlines()[-2:]
    assert "batch_size=32 * 2" in first
    assert "validation_data=(tfdp_held_out(x, 0.1), tfdp_held_out(y, 0.1))" in first
    assert second == "model.fit(tfdp_even(x), tfdp_even(y), batch_size=8 * 2)"
    unchanged = reference("a.py", source.encode(), 2, "global").decode().splitlines()[-1]
    assert unchanged == "model.fit(tfdp_even(x), tfdp_even(y), batch_size=8)"
