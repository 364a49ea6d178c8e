"""How many examples a worker has at hand: in global mode what follows that number gets that of all, or is refused."""

from __future__ import annotations

import pytest

from tfdp.migrate import engine

_START = """\
import numpy as np
import tensorflow as tf

BATCH = 16
x = np.ones((640, 4), "float32")
ds = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(BATCH)
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)
scale = tf.Variable(1.0, trainable=False)


class Meter:
    def __init__(self):
        self.total, self.n = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n
        self.n += n


class Wide(tf.keras.layers.Layer):
    def call(self, h):
        return tf.reshape(tf.concat([h, tf.zeros((tf.shape(h)[0], 2))], 1), (tf.shape(h)[0], -1)) / tf.shape(h)[-1]


"""
_STEP = """\
def step(xb, yb, lam=0.1):
    with tf.GradientTape() as tape:
        loss = lam * scale * tf.reduce_mean((model(xb) - yb) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


"""
_LOOP = """\
{before}
for epoch in range(3):
    for xb, yb in ds:
        {step}
    {after}
"""
_TAPE = """with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(xb) - yb) ** 2)
        g = tape.gradient(loss, model.trainable_variables)
        """
_APPLY = "\n        opt.apply_gradients(zip(g, model.trainable_variables))"

_WHOLE = {
    "gradient-divided": ("", _TAPE + "g = [t / len(xb) for t in g]" + _APPLY, ""),
    "clip": ("", _TAPE + "g, _ = tf.clip_by_global_norm(g, 0.1 * int(tf.size(yb)))" + _APPLY, ""),
    "written-out": (
        "",
        _TAPE + "for v, t in zip(model.trainable_variables, g):\n            v.assign_sub(len(yb) * t)",
        "",
    ),
    "summed-and-divided": (
        "n, acc = 0, [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]",
        _TAPE + "n += xb.shape[0]\n        for a, t in zip(acc, g):\n            a.assign_add(t)",
        "opt.apply_gradients([(a / n, v) for a, v in zip(acc, model.trainable_variables)])",
    ),
    "applied-every-so-many": (
        "n, acc = 0, [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]",
        _TAPE + "n += len(xb)\n        for a, t in zip(acc, g):\n            a.assign_add(t)\n        if n >= 64:\n"
        "            opt.apply_gradients(zip(acc, model.trainable_variables))\n            n = 0",
        "",
    ),
    "rate": ("", "opt.learning_rate = 0.01 * len(xb)\n        step(xb, yb)", ""),
    "rate-by-a-sum": ("n = 0", "n += len(xb)\n        opt.learning_rate.assign(0.1 / n)\n        step(xb, yb)", ""),
    "rate-decided": ("n = 0", "step(xb, yb)\n        n += len(xb)", "if n > 900:\n        opt.learning_rate = 0.01"),
    "optimizer": ("opt = tf.keras.optimizers.SGD(0.01 * len(next(iter(ds))[0]))", "step(xb, yb)", ""),
    "variable-decided": ("n = 0", "n += len(xb)\n        step(xb, yb)", "if n > 900:\n        scale.assign(0.5)"),
    "conditional-update": (
        "",
        _TAPE
        + "def apply():\n            opt.apply_gradients(zip(g, model.trainable_variables))\n            return 1\n"
        "        tf.cond(tf.shape(xb)[0] > 10, apply, lambda: 0)",
        "",
    ),
}
_OWN = {
    "gradient-by-lambda": ("", _TAPE + "g = tf.nest.map_structure(lambda t: t * xb.shape[0], g)" + _APPLY, ""),
    "gradient-by-unpacked-shape": ("", _TAPE + "b, d = yb.shape\n        g = [t * b for t in g]" + _APPLY, ""),
    "rate-by-a-list": ("ns = []", "ns.append(len(xb))\n        step(xb, yb)", "opt.learning_rate = 0.1 / sum(ns)"),
    "rate-by-a-meter": (
        "meter = Meter()",
        "meter.update(float(step(xb, yb)), len(xb))",
        "opt.learning_rate = 0.1 / (1 + meter.n)",
    ),
    "rate-by-a-dict": ("d = {'n': 0}", "step(xb, yb)\n        d['n'] += len(xb)", "opt.learning_rate = 0.1 / d['n']"),
    "rate-counted-row-by-row": (
        "n = 0",
        "step(xb, yb)\n        for row in xb:\n            n += 1",
        "opt.learning_rate = 0.1 / n",
    ),
    "variable": ("", "scale.assign(tf.cast(tf.shape(xb)[0], tf.float32) / 9)\n        step(xb, yb)", ""),
    "weights": (
        "",
        "step(xb, yb)\n        for v in model.trainable_variables:\n            v.assign(v * 0.999 ** len(xb))",
        "",
    ),
    "step-as-often": ("", "for _ in range(len(xb) // 4):\n            step(xb, yb)", ""),
    "model-input": (
        "",
        _TAPE.replace("model(xb)", "model(xb * (1.0 + tf.cast(tf.shape(xb)[0], tf.float32)))") + _APPLY.strip(),
        "",
    ),
    "condition-in-a-loss": ("n = 0", "n += len(yb)\n        step(xb, yb, 1.0 if n > 200 else 0.1)", ""),
    "batch-changed": (
        "ds = ds.map(lambda a, b: (a * tf.cast(tf.shape(a)[0], tf.float32), b))",
        "step(xb, yb)",
        "",
    ),
    "sample-weights": (
        "n = 0\nmodel.compile(opt, 'mse')",
        "n += len(xb)\n        model.train_on_batch(xb, yb, sample_weight=np.full(len(xb), 1.0 / n))",
        "",
    ),
    "lambda-layer": (
        "model = tf.keras.Sequential([tf.keras.layers.Lambda(lambda t: t / tf.cast(tf.shape(t)[0], t.dtype))])",
        "step(xb, yb)",
        "",
    ),
    "shape-and-rate": (
        "",
        "k = len(xb)\n        opt.learning_rate = 0.01 * k\n        step(xb + tf.zeros((k, 1)), yb)",
        "",
    ),
    "mean-and-rate": (
        "n, total = 0, 0.0",
        "total += float(step(xb, yb)) * len(xb)\n        n += len(xb)",
        "print(total / n)\n    opt.learning_rate = 0.1 / n",
    ),
    "training-and-test": (
        "def size(rows):\n    return len(rows)",
        "opt.learning_rate = 0.01 * size(xb)\n        step(xb, yb)",
        "print(size(x))",
    ),
}
_ALIKE = {
    "shown": (
        "n, total = 0, 0.0",
        "total += float(step(xb, yb)) * len(xb)\n        n += len(xb)",
        "print(total / n, n)",
    ),
    "shown-now-and-then": (
        "n = 0",
        "step(xb, yb)\n        n += len(xb)\n        if n % 64 == 0:\n            print(n)",
        "",
    ),
    "shown-by-a-variable": (
        "n = tf.Variable(0)",
        "step(xb, yb)\n        n.assign_add(tf.shape(xb)[0])",
        "print(n.numpy())",
    ),
    "mean-over-the-batch": (
        "",
        _TAPE.replace("reduce_mean((model(xb) - yb) ** 2)", "reduce_sum((model(xb) - yb) ** 2) / len(xb)")
        + _APPLY.strip(),
        "",
    ),
    "weight-of-the-batch": ("", "step(xb, yb, len(xb) / BATCH)", ""),
    "number-of-gradients": ("", _TAPE + "g = [t / len(g) for t in g]" + _APPLY, ""),
    "width": ("", _TAPE + "g = [t / xb.shape[1] for t in g]" + _APPLY, ""),
    "width-from-behind": ("", "opt.learning_rate = 0.01 * int(xb.shape[-1])\n        step(xb, yb)", ""),
    "number-of-parts": ("", "opt.learning_rate = 0.01 * len((xb, yb))\n        step(xb, yb)", ""),
    "whole-data": ("", "step(xb, yb)", "opt.learning_rate = 0.1 * len(x) / 640"),
    "number-of-steps": ("k = 0", "step(xb, yb)\n        k += 1", "opt.learning_rate = 0.1 / (1 + k)"),
    "losses-so-far": ("every = []", "every.append(float(step(xb, yb)))", "opt.learning_rate = 0.1 / len(every)"),
    "none-left": ("", "if len(xb) == 0:\n            continue\n        step(xb, yb)", ""),
    "as-many-of-both": ("", "if len(xb) != len(yb):\n            raise ValueError\n        step(xb, yb)", ""),
    "shapes": ("model = tf.keras.Sequential([Wide(), tf.keras.layers.Dense(1)])", "step(xb, yb)", ""),
    "size-of-the-batch": ("", "opt.learning_rate = 0.001 * BATCH\n        step(xb, yb)", ""),
}


def _migrated(before: str, step: str, after: str) -> engine.Migration:
    text = _START + (_STEP if "step(xb" in step else "") + _LOOP.format(before=before, step=step, after=after or "pass")
    compile(text, "script", "exec")
    return engine.migrate("script.py", text.encode(), "global", shard="input")


@pytest.mark.parametrize("parts", _OWN.values(), ids=_OWN)
def test_what_follows_the_number_of_own_examples_is_refused(parts: tuple[str, str, str]) -> None:
    result = _migrated(*parts)
    assert result.refused
    # Where rows are multiplied by their number, the question of what mixes rows may have named the place before.
    assert {"TFDP014", "TFDP090"} & {f.code for f in result.findings if f.refusal}


@pytest.mark.parametrize("parts", _WHOLE.values(), ids=_WHOLE)
def test_where_it_is_only_a_number_it_becomes_that_of_all_workers(parts: tuple[str, str, str]) -> None:
    result = _migrated(*parts)
    assert not result.refused, result.findings
    assert b"dp.global_batch_size(" in result.after


@pytest.mark.parametrize("parts", _ALIKE.values(), ids=_ALIKE)
def test_what_does_not_is_left_alone(parts: tuple[str, str, str]) -> None:
    result = _migrated(*parts)
    assert not result.refused, result.findings
    assert b"dp.global_batch_size(" not in result.after


def test_the_count_is_named() -> None:
    (found,) = _migrated("d = [0]", "d[0] += len(xb)\n        step(xb, yb)", "opt.learning_rate = 0.1 / d[0]").findings
    assert "the learning rate depends here on how many examples a worker has at hand" in found.message
    assert "`len(xb)` counts this worker's examples (line 37)" in found.message
