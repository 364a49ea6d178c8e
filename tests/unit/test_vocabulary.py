"""What is in the vocabulary of sharded input, and that the known ways to be wrong in silence are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfdp.migrate import engine
from tfdp.migrate.facts import read
from tfdp.rules._base import Policy

ROOT = Path(__file__).parents[2]
TAPE = """\
import os
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

rng = np.random.default_rng(0)
x = rng.normal(size=(64, 3)).astype("float32")
y = (x[:, :1] > 0).astype("float32")
noisy = x + 0.1
data = tf.data.Dataset.from_tensor_slices((x, y)){stages}.batch(8)
model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(4, activation=tf.nn.relu), layers.Dense(1)])
loss_of = tf.keras.losses.MeanSquaredError()
optimizer = tf.keras.optimizers.SGD(0.1)
mean = tf.keras.metrics.Mean()
losses, count = (0.0,), 0
{before}

@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        loss = {loss}
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    {after}
    return loss


for epoch in range(3):
    for number, (a, b) in enumerate(data):
        loss = step({args})
        losses = (float(loss),)
        {each}
    print(f"epoch {{epoch}}: {{np.mean(losses):.3f}}")
    {epoch}
model.save("model.keras")
"""
_TAPE = {
    "stages": ".shuffle(64)",
    "before": "",
    "loss": "loss_of(b, model(a, training=True))",
    "after": "mean.update_state(loss)",
    "args": "a, b",
    "each": "pass",
    "epoch": "mean.reset_state()",
}


def _log(given: str) -> str:
    """A list, and a name for what may be it."""
    return f"sizes = [4]; log = {given}"


def tape(**parts: str) -> str:
    return TAPE.format(**{**_TAPE, **{k: v.replace("\n", "\n    ") for k, v in parts.items()}})


def outside(source: str) -> str:
    found = read(source).outside_vocabulary
    return "" if found is None else found.reason.removesuffix(" is not in the vocabulary of sharded input")


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"loss": "loss_of(b, model(a)) + 0.1 * sum(model.losses)"},
        {"loss": "loss_of(b, tf.cast(tf.keras.Sequential([model])(model(a)), tf.float64))"},
        {"before": "freezes = True; model.layers[0].trainable = not freezes"},
        {
            "before": "def forward(a, training):\n    return model(a, training=training)",
            "loss": "loss_of(b, forward(a, True))",
        },
        {"loss": "2.0 * loss_of(tf.cast(b, tf.float32), model(a)) / len(x)"},
        {"stages": ".map(lambda p, q: (tf.cast(p, tf.float32) / 255.0, q))"},
        {"stages": ".map(lambda p, q: (tf.image.resize(p, (8, 3)), q))"},
        {"before": "data = data.map(lambda p, q: (tf.image.convert_image_dtype(p, tf.float32), tf.one_hot(q, 3)))"},
        {"each": "count += 1\n    if count % 10 == 0:\n        print(count, float(loss))"},
        {"before": "weight = 0.5 if os.environ.get('HALF') else 1.0", "loss": "weight * loss_of(b, model(a))"},
    ],
)
def test_loops_within_the_vocabulary(parts: dict[str, str]) -> None:
    assert outside(tape(**parts)) == ""
    found = engine.migrate("train.py", tape(**parts).encode(), Policy("input"))
    assert (found.road, found.refused) == ("input", False)


def test_data_that_are_trained_on_and_measured_on_are_no_matter_of_words() -> None:
    script = tape(
        before="seen = tf.keras.metrics.Mean()",
        epoch="for a, b in data:\n    seen(loss_of(b, model(a)))\nprint(seen.result().numpy())",
    )
    assert outside(script) == ""
    assert engine.migrate("train.py", script.encode(), Policy("input")).refused


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        # Shapes that broadcast, totals, and what a batch has of its own.
        ({"loss": "tf.reduce_mean((b - model(a)) ** 2)"}, "`b - model(a)`"),
        ({"loss": "tf.reduce_mean(tf.keras.losses.mse(b, model(a)))"}, "`tf.keras.losses.mse(b, model(a))`"),
        ({"loss": "loss_of(b[:, 0], model(a))"}, "`b[:, 0]`"),
        ({"loss": "loss_of(b, model(a)) / a.shape[0]"}, "`a.shape`"),
        ({"loss": "loss_of(b, model(a + tf.random.normal([8, 3])))"}, "`tf.random.normal([8, 3])`"),
        ({"loss": "loss_of(b, model(a + tf.random.stateless_normal([8, 3], [1, 2])))"}, "stateless_normal"),
        ({"loss": "loss_of(tf.nn.softmax(b), model(a))"}, "`tf.nn.softmax(b)`"),
        ({"loss": "loss_of(layers.Softmax()(b), model(a))"}, "`layers.Softmax()(b)`"),
        ({"loss": "loss_of(model(b), model(a))"}, "`loss_of(model(b), model(a))`"),
        ({"loss": "loss_of(b, model.layers[0](a))"}, "`model.layers[0](a)`"),
        ({"loss": "loss_of(b, layers.concatenate([model(a), b]))"}, "`layers.concatenate([model(a), b])`"),
        ({"loss": "loss_of(b, model(noisy[:8] + a))"}, "`noisy[:8] + a`"),
        ({"loss": "loss_of(b, tf.nn.softmax(model(a), axis=0))"}, "axis=0"),
        # What one step leaves to the next.
        ({"loss": "loss_of(b, model(a)) * losses[-1]"}, "`loss_of(b, model(a)) * losses[-1]`"),
        ({"loss": "loss_of(b, model(a)) * mean.result()"}, "mean.result()"),
        ({"loss": "loss_of(b, model(a)) * mean(1.0)"}, "`mean(1.0)`"),
        ({"each": "count = float(loss)\n    if count > 1: pass"}, "a decision on `count > 1`"),
        ({"each": "while losses[-1] > 1:\n        pass"}, "`while`"),
        ({"each": "optimizer.learning_rate.assign(0.1)"}, "`optimizer.learning_rate`"),
        ({"each": "optimizer.learning_rate = float(loss)"}, "`optimizer.learning_rate`"),
        ({"each": "x[0] = float(loss)"}, "`x[0]`"),
        ({"each": "noisy += float(loss)"}, "`noisy += float(loss)`"),
        ({"each": "np.add(noisy, float(loss), noisy)"}, "`np.add(noisy, float(loss), noisy)`"),
        ({"each": "np.copyto(noisy, losses)"}, "`np.copyto(noisy, losses)`"),
        ({"each": "noisy.dot(float(loss), noisy)"}, "`noisy.dot(float(loss), noisy)`"),
        ({"each": "np.exp(losses, out=noisy)"}, "`np.exp(losses, out=noisy)`"),
        ({"each": "os.environ['LAST'] = str(float(loss))"}, "`os.environ`"),
        ({"each": "setattr(model, 'last', loss)"}, "`setattr(model, 'last', loss)`"),
        (
            {"each": "rng = np.random.default_rng(int(float(loss) * 1e6))\n    x += rng.normal(size=3)"},
            "`np.random.default_rng(",
        ),
        ({"each": "both = [x, losses]"}, "`losses`, a worker's own value in a list,"),
        ({"before": "seen = []", "each": "seen.extend(losses)"}, "`seen.extend(losses)`"),
        (
            {"before": "seen = []", "epoch": "seen.append(float(loss))"},
            "`seen.append(float(loss))`, a worker's own value",
        ),
        ({"epoch": "seen = {'a': float(loss)}"}, "`float(loss)`, a worker's own value in a list,"),
        ({"epoch": "seen = [float(loss) for _ in range(2)]"}, "range(2)]`, a worker's own value in a list,"),
        # A list that is filled under another name, or looked into later.
        (
            {"before": _log("sizes if count else None"), "epoch": "layers.Dense(log[-1])"},
            "`log`, which may be one thing",
        ),
        ({"before": _log("sizes or []")}, "`sizes or []`"),
        ({"before": _log("max([], sizes)")}, "`max([], sizes)`"),
        ({"before": _log("tuple([sizes, []])")}, "`tuple([sizes, []])`"),
        ({"before": _log("{}; log['a'] = sizes")}, "`log['a']`"),
        ({"before": _log("{'a': sizes}.values()")}, "`{'a': sizes}.values()`"),
        ({"before": _log("tf.keras.Sequential(sizes)"), "epoch": "sizes.append(1)"}, "`sizes.append(1)`"),
        ({"each": "np.array(losses).mean(0, None, noisy)"}, "`np.array(losses).mean(0, None, noisy)`"),
        # A batch of two that is cut into its rows.
        ({"before": "data = tf.data.Dataset.from_tensor_slices(x).batch(2)"}, "`a, b`"),
        ({"before": "data = data.map(lambda p, q: p)"}, "`a, b`"),
        ({"each": "p, q = b"}, "`p, q`"),
        ({"before": "data = data.map(lambda p, q: (p * [1, 2, 3], q))"}, "`p * [1, 2, 3]`"),
        (
            {"before": "tf.keras.optimizers.schedules.PiecewiseConstantDecay(np.array([4]), [0.1, 0.2])"},
            "`tf.keras.optimizers.schedules.PiecewiseConstantDecay",
        ),
        ({"after": "rng.normal()"}, "`rng.normal()`"),
        ({"before": "data = data.map(lambda p, q: ([p, p], q))"}, "`data.map(lambda p, q: ([p, p], q))`"),
        ({"epoch": "log = 'now ' f'{losses[-1]}'\nif log > 'now 1': pass"}, "a decision on `log > 'now 1'`"),
        ({"epoch": "print(model.evaluate([data][0]))"}, "`[data][0]`"),
        ({"each": "try:\n        count = 1 / int(float(loss))\n    except ZeroDivisionError:\n        pass"}, "`try`"),
        ({"each": "next(iter(data))"}, "`iter(data)`"),
        # Rows of two datasets side by side, and what is no more of a batch that stays behind.
        ({"each": "for p, q in data:\n        step(a, q)"}, "`data`"),
        ({"each": "for p, q in zip(data, noisy):\n        step(p, q)"}, "`zip(data, noisy)`"),
        ({"each": "for p, q in zip(data, data):\n        pass"}, "`zip(data, data)`"),
        ({"epoch": "step(a, b)"}, "`a`, which may be one thing or another"),
        ({"each": "{1, 2}"}, "`{1, 2}`"),
        # What stands between the records and the step, or is changed from out of sight.
        ({"stages": ".map(lambda p, q: (p + tf.random.normal([3]), q))"}, "`tf.random.normal([3])`"),
        ({"stages": ".map(lambda p, q: (p + np.random.rand(), q))"}, "`np.random.rand()`"),
        ({"stages": ".map(lambda p, q: (p + noisy[0], q))"}, "`p + noisy[0]`"),
        ({"before": "log = []", "stages": ".map(lambda p, q: (log.append(1), q))"}, "`log.append(1)`"),
        ({"stages": ".filter(lambda p, q: True)"}, "filter"),
        # Of a batch of matrices the first axis is the height of one image, for TensorFlow.
        ({"before": "data = data.map(lambda p, q: (tf.image.resize(p, (8, 3)), q))"}, "`tf.image.resize(p, (8, 3))`"),
        ({"loss": "loss_of(b, model(tf.image.resize(a, (8, 3))))"}, "`tf.image.resize(a, (8, 3))`"),
        ({"loss": "loss_of(tf.one_hot(b, 8, axis=0), model(a))"}, "`tf.one_hot(b, 8, axis=0)`"),
        ({"loss": "loss_of(tf.one_hot(b, 8, 1.0, 0.0, 0), model(a))"}, "`tf.one_hot(b, 8, 1.0, 0.0, 0)`"),
        ({"stages": ".batch(4)"}, "batch(8)"),
        ({"before": "tf.keras.layers.Dense.call = None"}, "`tf.keras.layers.Dense.call`"),
        ({"each": "model.call = step"}, "`model.call`"),
        # What the number of the step or a worker's own loss leaves out, where no `if` asks.
        ({"each": "number < 6 and step(a, b)"}, "`step(a, b)`"),
        ({"each": "float(loss) > 0.5 and rng.normal()"}, "`rng.normal()`"),
        ({"each": "number % 3 == 0 or step(a, b)"}, "`step(a, b)`"),
        ({"each": "0 < number < step(a, b)"}, "`step(a, b)`"),
        (
            {"epoch": "[step(a, b) for number, (a, b) in enumerate(data) if number < 6]"},
            "`[step(a, b) for number, (a, b) in enumerate(data)",
        ),
        # What counts steps under another name.
        ({"each": "noisy[0] += 1"}, "`noisy[0] += 1`"),
        ({"each": "noisy += 1"}, "`noisy += 1`"),
        ({"each": "noisy[0] = noisy[0] + 1"}, "`noisy[0]`"),
        ({"before": "def tick(c): c += 1", "each": "tick(noisy)"}, "`c += 1`"),
        ({"before": "view = noisy[1:]", "each": "view[0] = 1"}, "`view[0]`"),
        ({"each": "np.add(noisy, 1, noisy)"}, "`np.add(noisy, 1, noisy)`"),
        ({"each": "np.exp(noisy, noisy)"}, "`np.exp(noisy, noisy)`"),
        ({"each": "noisy.round(2, noisy)"}, "`noisy.round(2, noisy)`"),
        ({"each": "rng.shuffle(noisy)"}, "`rng.shuffle(noisy)`"),
        ({"before": "seen = []", "each": "seen.append(number)"}, "`seen.append(number)`"),
        ({"before": "seen = []", "each": "seen += [1]"}, "`seen += [1]`"),
        # What nothing says that rank 0 alone writes.
        (
            {"epoch": "for one in [model, model]:\n    one.save_weights('w.h5')"},
            "`one.save_weights('w.h5')`, which every worker would write,",
        ),
        (
            {"before": "other = tf.data.Dataset.from_tensor_slices((x, y)).cache('of all').batch(8)"},
            "`tf.data.Dataset.from_tensor_slices((x, y)).cache('of all')`, which every worker would write,",
        ),
        # Metrics of which it is not known what they have seen.
        (
            {"before": "kept = [mean]", "after": "kept[0].update_state(loss)"},
            "`kept[0].update_state(loss)`, of a metric",
        ),
        (
            {
                "before": "other = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)",
                "epoch": "for a, b in other: mean.update_state(loss_of(b, model(a)))\nprint(mean.result())",
            },
            "`mean.result()`, of a metric that several loops",
        ),
        # What is chosen by the number of the step, where nothing is asked.
        ({"each": "model.trainable = number < 6"}, "`model.trainable`"),
        ({"each": "model.trainable = [True, True, False, False][number]"}, "`number`, which goes by"),
        ({"each": "model.trainable = (True, False)[epoch // 4]"}, "`(True, False)[epoch // 4]`"),
        ({"each": "count += 1", "epoch": "model.trainable = count < 6"}, "`model.trainable`"),
        ({"each": "model.trainable, count = True, 1"}, "`model.trainable`"),
        ({"loss": "loss_of(b, model(a, training=len(losses) < 6))"}, "`model(a, training=len(losses) < 6)`"),
        ({"before": "import sys; sys.setprofile(len)"}, "`len`"),
        ({"before": "import sys; sys.settrace(None)"}, "`sys.settrace(None)`"),
        ({"before": "import helper"}, "`import helper`"),
        ({"before": "from os import *"}, "`from os import *`"),
        ({"before": "again = lambda n: again(n)\n\nagain(1)".replace("\n\n", "; ")}, "`again(n)`"),
        ({"before": "class Own(list):\n    pass"}, "`class Own`"),
        ({"before": "del count"}, "`del`"),
        ({"before": "exec('x = 1')"}, "`exec('x = 1')`"),
        ({"args": "*[a, b]"}, "`step(*[a, b])`"),
        ({"after": "model.trainable_variables[0].assign_add(loss)"}, "`model.trainable_variables[0]`"),
        ({"after": "losses.append(loss)"}, "`losses.append(loss)`"),
        ({"each": "for _ in range(int(float(loss))):\n        count += 1"}, "`range(int(float(loss)))`"),
        ({"each": "count = sum([1 for _ in range(int(float(loss)))])"}, "`range(int(float(loss)))`"),
        ({"each": "for i, _ in enumerate(range(int(float(loss)))):\n        count = i"}, "`enumerate("),
        (
            {"before": "import time", "each": "for _ in range(int(time.time())):\n        count += 1"},
            "`range(int(time.time()))`",
        ),
        ({"each": "np.datetime64('now')"}, "`np.datetime64('now')`"),  # a clock
        ({"each": "np.vectorize(abs)(noisy)"}, "`abs`"),
        ({"each": "np.kaiser(3, 1)"}, "`np.kaiser(3, 1)`"),
        ({"each": "noisy = np.empty_like(x)"}, "`np.empty_like(x)`"),  # whatever a process has in its memory
        ({"each": "np.random.seed(int(float(loss)))"}, "`np.random.seed(int(float(loss)))`"),
        ({"each": "np.random.rand(int(float(loss)))"}, "`np.random.rand(int(float(loss)))`"),
    ],
)
def test_loops_outside_it(parts: dict[str, str], said: str) -> None:
    assert said in outside(tape(**parts)), outside(tape(**parts))
    found = engine.migrate("train.py", tape(**parts).encode(), Policy("input"))
    assert (found.refused, found.changed) == (True, False)
    assert said in found.findings[0].message


def test_the_examples_are_within_it() -> None:
    for path in (ROOT / "migrate" / "examples").glob("*.py"):
        assert outside(path.read_text()) == "", path.name


def test_a_text_without_end_is_read_in_time() -> None:
    grown = "f0 = lambda n: n; " + "".join(f"f{i} = lambda n: f{i - 1}(n) + f{i - 1}(n); " for i in range(1, 12))
    assert outside(tape(before=grown + "count = f3(1)")) == ""
    assert "f0(n)" in outside(tape(before=grown + "count = f11(1)"))
