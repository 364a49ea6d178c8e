"""Definitions that are replaced while the script runs: what they then do is in no text that facts read."""

from __future__ import annotations

import pytest

from tfdp.migrate import engine
from tfdp.rules._base import Policy

_SCRIPT = """
import tensorflow as tf

x, y = tf.random.normal((96, 4)), tf.random.normal((96, 1))
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)


class Keep:
    def go(self, v):
        return v * 2.0


class Mix:
    def go(self, v):
        return v - tf.reduce_mean(v, axis=0)


def keep(v):
    return v * 2.0


def mix(v, *others):
    return v - tf.reduce_mean(v, axis=0)


kept = Keep()
{patch}


@tf.function
def step(xb, yb):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model({rows}, training=True) - yb))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


for xb, yb in dataset:
    step(xb, yb)
"""

_PATCHES = {
    "a function of TensorFlow": ("tf.identity = mix", "tf.identity(xb)"),
    "a function of TensorFlow by setattr": ('setattr(tf, "identity", mix)', "tf.identity(xb)"),
    "any function of TensorFlow": ("for name in ['identity']:\n    setattr(tf, name, mix)", "tf.identity(xb)"),
    "a method of Keras": ("tf.keras.layers.Dense.call = mix", "xb"),
    "a function of Python": ("import builtins\nbuiltins.float = mix", "xb"),
    "what a model runs": ("model.call = lambda v, training=None, mask=None: mix(v)", "xb"),
    "a method of the class": ("Keep.go = lambda self, v: mix(v)", "kept.go(xb)"),
    "a method of the class by setattr": ('setattr(Keep, "go", lambda self, v: mix(v))', "kept.go(xb)"),
    "a method of the object": ("kept.go = mix", "kept.go(xb)"),
    "a method of the object by its table": ('kept.__dict__["go"] = mix', "kept.go(xb)"),
    "a method of the object by vars": ('vars(kept)["go"] = mix', "kept.go(xb)"),
    "the class of the object": ("kept.__class__ = Mix", "kept.go(xb)"),
    "what a function runs": ("keep.__code__ = mix.__code__", "keep(xb)"),
    "a name of the file": ('globals()["keep"] = mix', "keep(xb)"),
    "several names of the file": ('globals().update({"keep": mix})', "keep(xb)"),
    "a text": ('exec("keep = mix")', "keep(xb)"),
    "a mock": ('from unittest import mock\nmock.patch.object(Keep, "go", mix).start()', "kept.go(xb)"),
}

_HARMLESS = {
    "nothing": "",
    "a setting": "model.trainable = True",
    "what describes": 'keep.__name__ = "other"',
    "a method compiled": "kept.go = tf.function(kept.go)",
    "a function of a namespace": "import types\nset = types.SimpleNamespace()\nset.go = mix",
    "another module's": "import ssl\nssl._create_default_https_context = ssl._create_unverified_context",
}


def _refusals(patch: str, rows: str) -> list[engine.Finding]:
    source = _SCRIPT.format(patch=patch, rows=rows).encode()
    assert not engine.migrate("train.py", source).refused
    return [f for f in engine.migrate("train.py", source, Policy(batch="per-worker")).findings if f.refusal]


@pytest.mark.parametrize("case", _PATCHES)
def test_a_replaced_definition_keeps_the_scripts_batch(case: str) -> None:
    patch, rows = _PATCHES[case]
    (found,) = _refusals(patch, rows)
    first = _SCRIPT.split("{patch}", maxsplit=1)[0].count("\n") + 1
    assert first <= found.line <= first + patch.count("\n"), found


@pytest.mark.parametrize("case", _HARMLESS)
def test_what_replaces_nothing_is_no_reason_to_keep_it(case: str) -> None:
    assert not _refusals(_HARMLESS[case], "kept.go(xb)")
