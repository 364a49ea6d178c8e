"""Whether each row of a value comes from the same row of the batch alone: one answer for each expression in a layer."""

from __future__ import annotations

import pytest

from tfdp.migrate.facts import read

_SCRIPT = """\
import numpy as np
import tensorflow as tf
import keras
from elsewhere import foreign

x = np.zeros((64, {shape}), "float32")
y = np.zeros((64, 1), "float32")

class Layer(keras.layers.Layer):
    def __init__(self, width=8):
        super().__init__()
        self.width = width
        self.dense = keras.layers.Dense(width)
        self.query, self.key = keras.layers.Dense(width), keras.layers.Dense(width)
        self.blocks = [keras.layers.Dense(width) for _ in range(3)]
        self.lstm = keras.layers.LSTM(4, return_sequences=True)
        self.attention = keras.layers.MultiHeadAttention(2, 4)
        self.token = self.add_weight(shape=(1, 1, 8))
    def centred(self, t):
        return t - tf.reduce_mean(t, axis=0)
    def two(self, t):
        return self.dense(t), tf.shape(t)[0]
    def call(self, h, training=None):
{body}

model = keras.Sequential([keras.Input(({shape},)), Layer(), keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(16))
"""

APART = {  # of (examples, features)
    "tf.nn.relu(self.dense(h))": "elementwise, and layers",
    "tf.nn.softmax(h)": "the last axis",
    "tf.nn.softmax(h, axis=-1) - tf.reduce_mean(h, axis=1, keepdims=True)": "of each example",
    "tf.math.l2_normalize(h, axis=-1)": "of each example",
    "keras.ops.std(h, axis=-1, keepdims=True) * h": "of each example",
    "tf.reshape(h, [tf.shape(h)[0], -1])": "the number of examples stays in front",
    "tf.reshape(h, (keras.ops.shape(h)[0], 2, 4))": "the same, Keras' ops",
    "tf.reshape(h, tf.concat([tf.shape(h)[:1], [2, 4]], 0))": "the front of a shape",
    "tf.concat([h, tf.random.normal([tf.shape(h)[0], 100])], axis=1)": "noise for each",
    "h + tf.random.normal(tf.shape(h))": "noise for each",
    "h + tf.exp(0.5 * h) * keras.random.normal(keras.ops.shape(h))": "sampling",
    "tf.concat([h, tf.ones([tf.shape(h)[0], 1])], axis=-1)": "a column of ones",
    "tf.tile(tf.ones([1, 8]), [tf.shape(h)[0], 1]) + h": "a constant for each",
    "h[..., ::-1]": "features turned round",
    "h[:, ::-1]": "features turned round",
    "tf.reverse(h, axis=[1])": "features turned round",
    "tf.roll(h, 1, axis=1)": "features turned on",
    "tf.gather(h, [1, 0], axis=1)": "features by number",
    "tf.gather(tf.eye(8), tf.argmax(h, axis=1))": "rows of a table",
    "tf.transpose(tf.transpose(h))": "there and back",
    "tf.matmul(h, tf.eye(8))": "times weights",
    "h @ tf.eye(8)": "times weights",
    "tf.transpose(tf.matmul(tf.eye(8), tf.transpose(h)))": "times weights, from the left",
    "tf.cumsum(h, axis=1)": "along the features",
    "self.two(h)[0]": "one of several values",
    "tf.squeeze(tf.expand_dims(h, 1), 1)": "an axis in, and out",
    "tf.where(h > 0, h, 0.0)": "elementwise",
    "h * tf.cast(tf.range(tf.shape(h)[1]), tf.float32)": "places of the features",
    "self.attention(h[:, None], h[:, None])": "over one time step",
    "keras.layers.UnitNormalization()(h)": "the last axis",
    "keras.layers.BatchNormalization()(h)": "a known difference",
    "tf.einsum('bi,ij->bj', h, tf.eye(8))": "an equation of each example",
    "tf.stack([h, h], axis=1)": "side by side",
}
APART_SEQUENCES = {  # of (examples, time, features)
    "tf.matmul(tf.nn.softmax(tf.matmul(self.query(h), self.key(h), transpose_b=True)), h)": "attention over time",
    "tf.einsum('bij,bjd->bid', tf.nn.softmax(tf.einsum('bid,bjd->bij', h, h)), h)": "the same as equations",
    "tf.transpose(self.centred(tf.transpose(h, [1, 0, 2])), [1, 0, 2])": "time first, over time",
    "tf.transpose(h, perm=[0, 2, 1])": "two axes behind the examples'",
    "self.lstm(h)": "over time",
    "self.attention(h, h)": "over time",
    "h[:, -1]": "the last time step",
    "h[:, 0, :]": "the first time step",
    "h[:, ::-1, :]": "time turned round",
    "tf.reduce_mean(h, axis=1)": "over time",
    "tf.reduce_mean(h, axis=[1, 2])": "over all axes but the examples'",
    "tf.concat([tf.broadcast_to(self.token, [tf.shape(h)[0], 1, 8]), h], axis=1)": "a class token",
    "tf.concat([tf.tile(self.token, [tf.shape(h)[0], 1, 1]), h], axis=1)": "a class token",
    "h + tf.cast(tf.range(tf.shape(h)[1]), tf.float32)[None, :, None]": "positions",
    "tf.transpose(tf.reshape(h, [tf.shape(h)[0], -1, 2, 4]), [0, 2, 1, 3])": "heads",
    "keras.ops.swapaxes(h, 1, 2)": "two axes behind the examples'",
    "tf.unstack(h, axis=1)[0]": "one time step of several",
    "tf.matmul(h, h, transpose_a=True)": "a matrix for each example",
    "tf.linalg.inv(tf.matmul(h, h, transpose_a=True))": "a matrix for each example",
}
MIXED = {
    "h[::-1]": "turned round",
    "h + h[::-1]": "turned round",
    "tf.reverse(h, [0]) * 0.5 + h": "turned round",
    "keras.ops.flip(h, axis=0)": "turned round",
    "h - h[:1]": "the first",
    "h[1:] - h[:-1]": "neighbours",
    "tf.concat([h[1:], h[:1]], axis=0)": "turned on",
    "h + tf.roll(h, shift=1, axis=0)": "turned on",
    "h + tf.gather(h, tf.random.shuffle(tf.range(tf.shape(h)[0])))": "in an order that is drawn",
    "h + tf.random.shuffle(h)": "in an order that is drawn",
    "tf.matmul(tf.matmul(h, h, transpose_b=True), h)": "a gram matrix",
    "tf.nn.softmax(h @ tf.transpose(h)) @ h": "attention over the examples",
    "h @ tf.matmul(h, h, transpose_a=True)": "the features' products over all examples",
    "tf.einsum('bd,cd->bc', h, h)": "a gram matrix as an equation",
    "tf.expand_dims(h, 0) - tf.expand_dims(h, 1)": "pairs",
    "h / keras.ops.std(h, axis=0)": "a deviation",
    "h - tf.reduce_mean(h)": "a mean of all",
    "h * tf.cast(tf.shape(h)[0], tf.float32)": "as many as there are",
    "h / len(h)": "as many as there are",
    "tf.nn.softmax(h, axis=0)": "along the examples",
    "tf.cumsum(h)": "along the examples",
    "tf.sort(h, axis=0)": "along the examples",
    "tf.gather(h, tf.argsort(h[:, 0]))": "sorted by a feature",
    "tf.gather(h, tf.argmax(h, axis=1))": "at places that the features say",
    "h - tf.math.unsorted_segment_mean(h, tf.argmax(h, axis=1), 8)": "means of groups",
    "tf.clip_by_norm(h, 1.0)": "by the norm of all",
    "tf.math.l2_normalize(h)": "by the norm of all",
    "h / tf.norm(h)": "by the norm of all",
    "tf.linalg.svd(h)[0]": "a matrix of all examples",
    "tf.where(h > tf.reduce_mean(h), h, 0.0)": "chosen by the mean of all",
    "h if tf.reduce_mean(h) > 0 else -h": "chosen by the mean of all",
    "tf.cond(tf.reduce_max(h) > 1, lambda: h, lambda: -h)": "chosen by the largest of all",
    "self.centred(h)": "in a method",
    "(lambda t: t - tf.reduce_mean(t, 0))(h)": "in a function without a name",
    "self.attention(h[None], h[None])": "attention over the examples",
    "tf.scan(lambda a, b: a + b, h)": "one after another",
    "keras.layers.Softmax(axis=0)(h)": "a layer along the examples",
    "keras.layers.LayerNormalization(axis=[0, 1])(h)": "a layer along the examples",
}
UNSETTLED = {
    "foreign(h)": "is not known to keep the examples of the batch apart",
    "tf.reshape(h, [-1, 2, 8])": "may put several examples into one row",
    "tf.boolean_mask(h, h[:, 0] > 0)": "takes rows of the batch by what is made of it",
    "tf.map_fn(foreign, h)": "is taken to give one value for each row",
    "h * tf.cast(tf.range(tf.shape(h)[0]), tf.float32)[:, None]": "numbers of their places",
}


def _of(expression: str, shape: str = "8") -> tuple[list[str], list[str]]:
    body = "\n".join(f"        {line}" for line in f"return {expression}".splitlines())
    mixing = read(_SCRIPT.format(body=body, shape=shape)).mixing
    return [p.reason for p in mixing.problems((), ())], [u.why.reason for u in mixing.unsettled]


@pytest.mark.parametrize("expression", APART)
def test_apart(expression: str) -> None:
    assert _of(expression) == ([], [])


@pytest.mark.parametrize("expression", APART_SEQUENCES)
def test_apart_in_sequences(expression: str) -> None:
    assert _of(expression, "5, 8") == ([], [])


@pytest.mark.parametrize("expression", MIXED)
def test_mixed(expression: str) -> None:
    problems, _ = _of(expression)
    assert len(problems) == 1
    assert "(line " in problems[0]


@pytest.mark.parametrize("expression", UNSETTLED)
def test_unsettled(expression: str) -> None:
    problems, unsettled = _of(expression)
    assert problems == []
    assert any(UNSETTLED[expression] in reason for reason in unsettled)


def test_the_chain_of_places() -> None:
    body = "        mean = tf.reduce_mean(h, 0)\n        return h - mean"
    (problem,) = read(_SCRIPT.format(body=body, shape="8")).mixing.problems((), ())
    assert problem.code == "TFDP090"
    assert problem.reason.endswith(
        ": `h - mean` puts each example together with a value of all of them (line 25); "
        "`tf.reduce_mean(h, 0)` puts all examples of the batch together (line 24)"
    )
    assert "axis=1" in problem.next_step


def test_a_list_that_is_filled() -> None:
    filled = "out"
    body = "out = []\n        for block in self.blocks:\n            h = block(h)\n            out.append(h)\n        "
    text = _SCRIPT.format(body=f"        {body}return tf.concat({filled}, axis=-1)", shape="8")
    assert read(text).mixing.unsettled == []
    turned = _SCRIPT.format(body=f"        {body.replace('append(h)', 'append(h[::-1])')}return out[0] + h", shape="8")
    assert read(turned).mixing.problems((), ()) != []


def test_a_layer_over_sequences_only_is_not_asked_about_the_others() -> None:
    """How many axes a layer is given says which of them is the examples'."""
    pairs = "tf.matmul(tf.matmul(h, h, transpose_b=True), h)"
    assert _of(pairs)[0]
    assert _of(pairs, "5, 8") == ([], [])
