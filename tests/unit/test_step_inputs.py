"""What reaches a training step besides its examples: refused where it is each worker's own, else left alone."""

from __future__ import annotations

import pytest

from tfdp.migrate import engine

_START = """\
import collections
import contextlib
import numpy as np
import tensorflow as tf

x = np.ones((640, 4), "float32")
ds = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)
threshold = tf.Variable(1.0, trainable=False)


def step(xb, yb, lam=0.1):
    with tf.GradientTape() as tape:
        penalty = tf.reduce_sum(model.trainable_variables[0] ** 2)
        loss = tf.reduce_mean((model(xb) - yb) ** 2) + lam * threshold * penalty
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

_OWN = {
    "conditional-expression": ("loss = 2.0", "loss = step(xb, yb, 0.1 if loss > 1 else 1.0)", ""),
    "element": ("loss, table = 2.0, [0.1, 1.0]", "loss = step(xb, yb, table[int(loss > 1)])", ""),
    "factor": ("loss = 2.0", "loss = step(xb, yb, max(0.1, float(loss)))", ""),
    "running-mean": ("mean = 1.0", "mean = 0.9 * mean + 0.1 * float(step(xb, yb, mean))", ""),
    "named-expression": ("loss = 2.0", "loss = step(xb, yb, (lam := 0.1 if loss > 1 else 1.0))", ""),
    "function": ("last = 2.0\nlam = lambda: 0.1 if last > 1 else 1.0", "last = float(step(xb, yb, lam()))", ""),
    "match": (
        "lam = 0.1",
        "loss = step(xb, yb, lam)\n        match int(loss):\n            case 0:\n                lam = 1.0",
        "",
    ),
    "batch-before": ("last = 0.0", "step(xb - last, yb)\n        last = tf.reduce_mean(xb)", ""),
    "first-batch": ("for first, _ in ds.take(1):\n    pass", "step(xb - first[0], yb)", ""),
    "after-the-epoch": ("lam, every = 0.1, []", "every.append(float(step(xb, yb, lam)))", "lam = np.median(every)"),
    "inner-steps": ("", "for _ in range(3):\n            lam = 0.1 if _ == 0 else float(step(xb, yb, lam))", ""),
    "decided-by-the-batch": ("", "lam = 0.1 if np.median(xb) > 0.5 else 1.0\n        step(xb, yb, lam)", ""),
    "number-of-steps": (
        "",
        "loss = step(xb, yb)\n        for _ in range(int(loss // 5)):\n            step(xb, yb)",
        "",
    ),
    "choice-of-data": (
        "loss, few = 2.0, ds.take(3)",
        "loss = step(xb, yb)",
        "for xb, yb in (few if loss > 1 else ds):\n        step(xb, yb)",
    ),
    "short-circuit": ("", "np.median(xb) > 0.5 or step(xb, yb)", ""),
    "exception": (
        "",
        "try:\n            tf.debugging.check_numerics(xb, '')\n            step(xb, yb)\n        "
        "except ValueError:\n            pass",
        "",
    ),
    "exception-suppressed": ("", "with contextlib.suppress(ValueError):\n            step(xb, yb)", ""),
    "exception-before": (
        "",
        "try:\n            tf.debugging.check_numerics(xb, '')\n        except ValueError:\n"
        "            continue\n        step(xb, yb)",
        "",
    ),
    "exception-replaces": (
        "",
        "try:\n            tf.debugging.check_numerics(xb, '')\n        except ValueError:\n"
        "            xb = 0 * xb\n        finally:\n            step(xb, yb)",
        "",
    ),
    "exception-flag": (
        "",
        "ok = True\n        try:\n            tf.debugging.check_numerics(xb, '')\n        "
        "except ValueError:\n            ok = False\n        if ok:\n            step(xb, yb)",
        "",
    ),
    "variable": ("", "threshold.assign(0.1 if step(xb, yb) > 1 else 1.0)", ""),
    "variable-of-collected": ("every = []", "every.append(step(xb, yb))", "threshold.assign(np.quantile(every, 0.9))"),
    "variable-of-a-first-batch": ("threshold.assign(tf.reduce_mean(next(iter(ds))[0]))", "step(xb, yb)", ""),
    "weights": ("", "step(xb, yb)", "model.set_weights([w + np.mean(yb) for w in model.get_weights()])"),
    "bias": ("", "step(xb, yb)", "model.layers[-1].bias.assign_add(tf.reduce_mean(yb - model(xb), 0))"),
    "bias-of-a-layer": ("last = model.get_layer(index=0)", "step(xb, yb)", "last.bias.assign(tf.reduce_mean(yb, 0))"),
    "rate": ("", "loss = step(xb, yb)\n        opt.learning_rate = 0.1 if loss > 1 else 0.01", ""),
    "momentum": ("", "loss = step(xb, yb)\n        opt.momentum = 0.9 if loss > 1 else 0.1", ""),
    "frozen": ("total = 0.0", "total = 0.5 * total + step(xb, yb)", "model.layers[0].trainable = total > 3"),
}
_ALIKE = {
    "epoch": ("", "step(xb, yb, 0.1 if epoch < 1 else 1.0)", ""),
    "report": ("every = []", "every.append(float(step(xb, yb)))", "print(np.median(every))"),
    "whole-data": ("", "step(xb, yb)", "threshold.assign(np.mean((model.predict(x) - x[:, :1]) ** 2))"),
    "averaged-gradient": (
        "",
        "step(xb, yb)\n        for v in model.trainable_variables:\n"
        "            v.assign(tf.clip_by_value(v, -1.0, 1.0))",
        "",
    ),
    "not-there": ("mask = None", "step(xb if mask is None else xb * mask, yb)", ""),
    "same-batch-again": (
        "",
        "twice = 2.0 * xb\n        for _ in range(3):\n            step(twice, yb)",
        "",
    ),
    "raised-again": (
        "",
        "try:\n            step(xb, yb)\n        except ValueError:\n            print(epoch)\n            raise",
        "",
    ),
    "interrupted": ("", "try:\n            step(xb, yb)\n        except KeyboardInterrupt:\n            pass", ""),
    "best-weights": (
        "best, w = 1e9, model.get_weights()",
        "loss = step(xb, yb)",
        "if loss < best:\n        best, w = loss, model.get_weights()",
    ),
    "variable-for-a-report": ("last = tf.Variable(0.0)", "last.assign(step(xb, yb))", "print(last.numpy())"),
}


def _migrated(before: str, step: str, after: str) -> engine.Migration:
    text = _START + _LOOP.format(before=before, step=step, after=after or "pass")
    compile(text, "script", "exec")
    return engine.migrate("script.py", text.encode(), "global", shard="input")


@pytest.mark.parametrize("parts", _OWN.values(), ids=_OWN)
def test_what_is_each_workers_own_is_refused(parts: tuple[str, str, str]) -> None:
    result = _migrated(*parts)
    assert result.refused
    assert {f.code for f in result.findings} & {"TFDP020", "TFDP030", "TFDP040", "TFDP053"}


@pytest.mark.parametrize("parts", _ALIKE.values(), ids=_ALIKE)
def test_what_all_workers_share_stays(parts: tuple[str, str, str]) -> None:
    result = _migrated(*parts)
    assert not result.refused, result.findings


def test_the_places_on_the_way_are_named() -> None:
    result = _migrated("lam = 0.1", "loss = step(xb, yb, lam)\n        lam = 0.1 if loss > 1 else 1.0", "")
    (found,) = result.findings
    assert "`lam` is read by the training step (line 25)" in found.message
    assert "`step(xb, yb, lam)` is made from this worker's examples (line 25)" in found.message
