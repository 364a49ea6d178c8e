"""Losses that are functions of sums over the batch: which of the sums are taken over all ranks, and by what."""

from __future__ import annotations

import re
import textwrap

import pytest

from tfdp.migrate import engine

COMPILED = """
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import backend as K

x, y = helper()
{functions}

model = keras.Sequential([keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.1), loss={loss})
model.fit(x, y, batch_size=16)
"""
TAPED = """
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(arrays).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)
{functions}

for x, y in data:
    with tf.GradientTape() as tape:
        p = model(x)
        loss = {loss}
    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
{after}
"""
REFUSED = "TFDP090"


def exchanged(source: str) -> str:
    """The functions by which sums of a migrated script are taken over all ranks, in order; or the refusal's code."""
    result = engine.migrate("train.py", source.encode(), shard="input")
    if result.refused:
        return next(f.code for f in result.findings if f.refusal)
    text = result.after.decode()
    again = engine.migrate("train.py", text.encode(), shard="input")
    assert not again.refused, again.findings
    assert again.after.decode() == text
    return " ".join(re.findall(r"dp\.(global_\w+|allreduce)\(", text))


def compiled(body: str) -> str:
    functions = "def own(y_true, y_pred, smooth=1):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return exchanged(COMPILED.format(functions=functions, loss="own"))


def taped(loss: str, functions: str = "", after: str = "") -> str:
    return exchanged(TAPED.format(loss=loss, functions=textwrap.dedent(functions), after=after))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return K.mean(K.square(y_true - y_pred))", ""),
        ("return K.sqrt(K.mean(K.square(y_true - y_pred)))", "global_mean"),
        ("return K.sqrt(K.mean(K.square(y_true - y_pred), axis=-1))", ""),
        ("return K.mean(K.square(y_true - y_pred)) + K.sqrt(K.mean(K.abs(y_pred)))", "global_mean"),
        ("return 1 - K.sum(y_true * y_pred) / (K.sum(y_true) + K.sum(y_pred))", "global_sum global_sum global_sum"),
        ("return tf.reduce_sum((y_true - y_pred) ** 2) / tf.reduce_sum(y_true)", "global_mean"),
        ("return tf.reduce_sum((y_true - y_pred) ** 2) / (tf.reduce_sum(y_true) + smooth)", "global_sum global_sum"),
        ("n = tf.cast(tf.shape(y_true)[0], tf.float32)\nreturn tf.sqrt(tf.reduce_sum(y_pred) / n)", "global_mean"),
        ("m = K.mean(y_pred)\nreturn K.sqrt(K.mean(K.square(y_pred - m)))", "global_mean global_mean"),
        ("b = keras.losses.BinaryCrossentropy()(y_true, y_pred)\nreturn (1 - tf.exp(-b)) ** 2 * b", "global_mean"),
        ("return tf.reduce_mean(1 - tf.reduce_mean(y_true)) * K.mean(y_pred)", "global_mean"),
        (
            "each = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)\n"
            "mask = K.cast(y_true > 0, 'float32')\n"
            "return K.sum(each(y_true, y_pred) * mask) / K.sum(mask)",
            "global_mean",
        ),
        # one grows as the batch does: no one learning rate fits
        ("return K.sum(K.square(y_true - y_pred)) + K.mean(y_pred)", REFUSED),
        ("return K.log(1 + K.exp(K.sum(y_pred)))", REFUSED),
        # no function of sums
        ("return K.max(K.abs(y_true - y_pred))", REFUSED),
        ("return K.mean(K.abs(y_pred - K.max(y_pred)))", REFUSED),
        ("return K.std(y_true - y_pred)", REFUSED),
        ("return K.mean(tf.matmul(y_true, y_pred, transpose_b=True))", REFUSED),
    ],
)
def test_sums_of_a_compiled_loss(body: str, expected: str) -> None:
    assert compiled(body) == expected


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("tf.reduce_mean(tf.square(y - p))", ""),
        ("tf.sqrt(tf.reduce_mean(tf.square(y - p)))", "allreduce"),
        ("tf.reduce_sum(p * y) / tf.reduce_sum(y)", "allreduce"),
        ("tf.reduce_sum(p * y) / (tf.reduce_sum(y) + 1)", "allreduce allreduce"),
        ("tf.reduce_mean(p) * tf.reduce_mean(y)", "allreduce"),
        ("tf.reduce_mean(model(tf.reduce_sum(p)))", REFUSED),
        ("tf.reduce_sum(p) + tf.reduce_mean(p)", REFUSED),
    ],
)
def test_sums_of_a_loss_in_a_step(loss: str, expected: str) -> None:
    assert taped(loss) == expected


ROOT = """
def root(y, p):
    return tf.sqrt(tf.reduce_mean(tf.square(y - p)))
"""


@pytest.mark.parametrize(
    ("functions", "after", "expected"),
    [
        (ROOT, "", "allreduce"),
        (ROOT, "print(float(root(y, model(x))))", "global_mean"),
        ("\n@tf.function" + ROOT, "", "allreduce"),
        ("\n@tf.function" + ROOT, "print(float(root(y, model(x))))", REFUSED),
        ("\n@tf.function(jit_compile=True)" + ROOT, "", REFUSED),
        (ROOT + "\ndef measure(f):\n    return f(y, y)\n", "print(measure(root))", "global_mean"),
        (ROOT + "\nroot = tf.function(root)\n", "print(float(root(y, model(x))))", REFUSED),
    ],
)
def test_a_loss_that_is_computed_outside_training_too(functions: str, after: str, expected: str) -> None:
    assert taped("root(y, p)", functions, after) == expected


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ("", "allreduce"),
        ("print(float(root(y_all, model(x_all))))", "global_mean"),
    ],
)
def test_a_call_beside_the_loss_in_the_function_of_the_step(beside: str, expected: str) -> None:
    step = """
    for x, y in data:
        with tf.GradientTape() as tape:
            loss = root(y, model(x))
        opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    """
    loop = "def train():" + step + "    " + beside
    head = TAPED.partition("\nfor x")[0].format(functions=ROOT, loss="")
    assert exchanged(f"{head}\n{loop}\n\ntrain()\n") == expected


@pytest.mark.parametrize(
    ("loss", "fit", "expected"),
    [
        ("lambda t, p: K.mean(t - p)", "fit(x, y, class_weight={0: 1.0, 1: 5.0})", REFUSED),
        ("lambda t, p: K.mean(t - p)", "fit(x, y, class_weight=None)", ""),
        ("lambda t, p: K.mean(t - p, axis=-1)", "fit(x, y, class_weight={0: 1.0, 1: 5.0})", ""),
        ("lambda t, p: K.mean(t - p)", "fit(tf.data.Dataset.from_tensor_slices((x, y, w)).batch(8))", REFUSED),
        ("lambda t, p: K.mean(t - p)", "fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8))", ""),
        ("lambda t, p: K.mean(t - p)", "fit(helper().map(lambda x, y: (x, y, y)).batch(8))", REFUSED),
        ("root", "fit(x, y, class_weight={0: 1.0, 1: 5.0})", "global_mean"),
        ("lambda t, p: 1 - root(t, p)", "fit(x, y)", "global_mean"),
        ("lambda t, p: K.sqrt(K.mean(K.square(t - p)))", "fit(x, y)", "global_mean"),
    ],
)
def test_weights_of_a_loss_that_is_one_number(loss: str, fit: str, expected: str) -> None:
    source = COMPILED.format(functions="w = helper()\n" + ROOT, loss=loss)
    assert exchanged(source.replace("fit(x, y, batch_size=16)", fit)) == expected


def test_a_sum_of_two_losses_that_disagree() -> None:
    """One is a plain sum, the other a ratio; both take it by one function."""
    functions = """
    def total(a):
        return tf.reduce_sum(a)

    def one(y_true, y_pred):
        return total(tf.square(y_true - y_pred))

    def two(y_true, y_pred):
        return 1 - (1 + total(y_true * y_pred)) / (1 + total(y_true + y_pred))
    """
    assert exchanged(COMPILED.format(functions=textwrap.dedent(functions), loss="[one, two]")) == REFUSED
    assert exchanged(COMPILED.format(functions=textwrap.dedent(functions), loss="[two, one]")) == REFUSED
    assert exchanged(COMPILED.format(functions=textwrap.dedent(functions), loss="two")) == "global_sum"


def test_a_gradient_that_trains_nothing_is_not_taken_of_them() -> None:
    functions = """
    def attack(tape, x, y, p):
        found = tf.reduce_mean(tf.square(y - p)) + root(y, p)
        return x + 0.1 * tf.sign(tape.gradient(found, x))
    """
    loss = "root(y, model(attack(inner, x, y, p)))"
    source = TAPED.format(loss=loss, functions=ROOT + textwrap.dedent(functions), after="")
    source = source.replace("as tape:", "as tape, tf.GradientTape() as inner:\n        inner.watch(x)")
    assert exchanged(source) == REFUSED
