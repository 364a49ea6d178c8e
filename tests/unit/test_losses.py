"""What a loss is over the batch: the honest losses stay means, everything that may couple examples does not."""

from __future__ import annotations

import pytest

from tfdp.migrate.facts import read
from tfdp.migrate.facts.losses import Reduction

MEAN, SUM, PER_EXAMPLE = Reduction.MEAN, Reduction.SUM, Reduction.PER_EXAMPLE
MIXED, UNKNOWN = Reduction.MIXED, Reduction.UNKNOWN
SCRIPT = """
import tensorflow as tf
import keras
import helper
{setup}
BATCH = 8
data = tf.data.Dataset.from_tensor_slices(arrays).batch(BATCH)
model = tf.keras.Sequential([])
other = tf.keras.Sequential([])
opt = tf.keras.optimizers.SGD(0.1)
mse = tf.keras.losses.MeanSquaredError()
for x, y in data:
    with tf.GradientTape() as tape:
        p = model(x)
        q = other(x)
        {loss}
    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
"""

SETUP = "w, b = tf.Variable(1.), tf.Variable(0.)\nh = {'a': tf.Variable(1.), 'b': tf.Variable(0.)}\n"
APPENDED = "terms = []\nfor v in model.trainable_variables:\n    terms"


def reduction(loss: str, setup: str = "") -> Reduction:
    body = loss if "loss =" in loss else f"loss = {loss}"
    script = read(SCRIPT.format(setup=setup, loss=body.replace("\n", "\n        ")))
    target = script.trained[0].target
    assert target is not None
    return script.losses.reduction(target)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        # elementwise expressions of labels and outputs
        ("tf.reduce_mean(p)", MEAN),
        ("tf.math.reduce_mean(p)", MEAN),
        ("-tf.reduce_mean(p)", MEAN),
        ("keras.ops.mean(keras.ops.square(y - p))", MEAN),
        ("tf.reduce_mean(input_tensor=tf.square(y - p))", MEAN),
        ("tf.reduce_mean(tf.square(y - p), axis=None)", MEAN),
        ("tf.reduce_mean((y - p) ** 2)", MEAN),
        ("e = tf.keras.losses.mse(y[:, :, None], p[:, :, None])\nloss = tf.reduce_mean(tf.reduce_sum(e, 1))", MEAN),
        ("tf.reduce_mean(tf.math.squared_difference(y, p))", MEAN),
        ("tf.reduce_mean(tf.abs(tf.subtract(y, p)))", MEAN),
        ("tf.reduce_mean(tf.where(tf.abs(y - p) < 1., tf.square(y - p), tf.abs(y - p)))", MEAN),
        ("-tf.reduce_mean(y * tf.math.log(tf.clip_by_value(p, 1e-7, 1.)) + (1 - y) * tf.math.log(1 - p))", MEAN),
        ("tf.reduce_mean(tf.square(tf.cast(y, tf.float32) - tf.squeeze(p)))", MEAN),
        ("tf.reduce_mean(tf.square(tf.reshape(y, [-1, 1]) - tf.reshape(p, (-1, 1))))", MEAN),
        ("tf.reduce_mean(tf.square(p - tf.stop_gradient(q)))", MEAN),
        ("tf.reduce_mean(tf.square(y - (x @ w + b)))", MEAN),
        ("tf.reduce_mean(tf.square(y - tf.matmul(x, w)))", MEAN),
        ("tf.reduce_mean(tf.square(y[:, 1:] - p[:, :-1]))", MEAN),
        ("tf.reduce_mean(-tf.one_hot(y, 10) * tf.nn.log_softmax(p))", MEAN),
        ("tf.reduce_mean(tf.nn.relu(1. - y * p))", MEAN),
        # per-example losses
        ("tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=p))", MEAN),
        ("tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, p))", MEAN),
        ("tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=p))", MEAN),
        ("tf.reduce_mean(tf.keras.losses.mse(y, p))", MEAN),
        ("tf.reduce_mean(tf.losses.categorical_crossentropy(tf.one_hot(y, 10), p, from_logits=True))", MEAN),
        ("tf.reduce_mean(tf.keras.losses.KLD(y, p))", MEAN),
        ("tf.keras.losses.mse(y, p)", PER_EXAMPLE),
        # along the last axis, which may be the batch's
        ("tf.keras.losses.mse(y, p[:, 0])", UNKNOWN),
        ("tf.reduce_mean(tf.keras.losses.mse(y, p[:, 0]))", MEAN),
        ("tf.reduce_sum(tf.keras.losses.mse(y, p[:, 0]))", UNKNOWN),
        ("tf.reduce_mean(tf.exp(tf.keras.losses.mse(y, p[:, 0])))", UNKNOWN),
        ("tf.keras.losses.mse(tf.reshape(y, [-1]), tf.reshape(p, [-1]))", MEAN),
        ("tf.keras.losses.kld(tf.reshape(y, [-1]), tf.reshape(p, [-1]))", UNKNOWN),
        ("tf.keras.losses.MeanSquaredError(reduction='none')(y, p[:, 0])", UNKNOWN),
        ("tf.reduce_mean(tf.reshape(p, [-1]), axis=-1)", MEAN),
        ("tf.reduce_mean(tf.nn.softmax(tf.reshape(p, [-1])))", MIXED),
        ("tf.reduce_mean(p, axis=1)", PER_EXAMPLE),
        ("tf.reduce_mean(p, 1)", PER_EXAMPLE),
        # sums and means along axes of one example
        ("tf.reduce_mean(tf.reduce_sum(tf.square(y - p), axis=1))", MEAN),
        ("tf.reduce_mean(tf.reduce_sum(tf.square(y - p), axis=-1))", MEAN),
        ("tf.reduce_mean(tf.reduce_sum(tf.square(y - p), [1, 2, 3]))", MEAN),
        ("tf.reduce_mean(tf.reduce_sum(tf.keras.losses.binary_crossentropy(y, p), axis=(1, 2)))", MEAN),
        ("tf.reduce_mean(tf.reduce_mean(tf.square(y - p), axis=1))", MEAN),
        ("tf.reduce_sum(tf.reduce_mean(tf.square(y - p), axis=0))", MEAN),
        ("-0.5 * tf.reduce_mean(tf.reduce_sum(1 + p - tf.square(q) - tf.exp(p), axis=1))", MEAN),
        ("tf.reduce_mean(tf.reduce_sum(y * p, axis=1) / tf.reduce_sum(y + p, axis=1))", MEAN),
        ("tf.reduce_mean(tf.reduce_max(p, axis=1))", MEAN),
        # sums of means, terms of the weights
        ("tf.reduce_mean(p) - tf.reduce_mean(q)", MEAN),
        ("mse(y, p) + 0.5 * tf.reduce_mean(q)", MEAN),
        ("tf.reduce_mean(mse(y, p))", MEAN),
        ("tf.add_n([mse(y, p), tf.reduce_mean(q)])", MEAN),
        ("(mse(y, p) + mse(y, q)) / 2", MEAN),
        ("0.5 * tf.reduce_mean(p) + 1e-4 * tf.nn.l2_loss(model.w)", MEAN),
        ("mse(y, p) + 1e-4 * tf.nn.l2_loss(w)", MEAN),
        ("mse(y, p) + 1e-4 * tf.reduce_sum(tf.square(w))", MEAN),
        ("mse(y, p) + tf.add_n([tf.nn.l2_loss(v) for v in model.trainable_variables])", MEAN),
        ("mse(y, p) + sum(tf.reduce_sum(tf.abs(v)) for v in model.trainable_weights)", MEAN),
        ("mse(y, p) + tf.nn.l2_loss(model.trainable_variables[0])", MEAN),
        ("mse(y, p) + tf.add_n(model.losses)", MEAN),
        (f"{APPENDED}.append(tf.nn.l2_loss(v))\nloss = mse(y, p) + tf.add_n(terms)", MEAN),
        (f"{APPENDED}.append(tf.nn.l2_loss(p))\nloss = mse(y, p) + tf.add_n(terms)", UNKNOWN),
        ("kept = []\nkept.append(p)\nloss = mse(y, p) + sum(tf.nn.l2_loss(v) for v in kept)", UNKNOWN),
        ("tf.reduce_mean(tf.square(y - tf.nn.relu(x @ h['a'] + tf.broadcast_to(h['b'], [8, 3]))))", MEAN),
        # assignments that add
        ("loss = mse(y, p)\nloss += sum(model.losses)", MEAN),
        ("loss = mse(y, p)\nloss *= 0.5", MEAN),
        ("loss = 0.\nfor i in range(3):\n    loss += mse(y, p)", MEAN),
        ("loss = 0.\nfor i in range(3):\n    loss = loss + mse(y[:, i], p[:, i])", MEAN),
        ("loss = mse(y, p)\nif helper.weights:\n    loss += tf.add_n(model.losses)", MEAN),
        ("loss = mse(y, p)\nloss += tf.reduce_sum(p)", UNKNOWN),
        ("loss = tf.reduce_sum(p)\nloss += sum(model.losses)", UNKNOWN),
        ("loss = 1. - tf.reduce_sum(p)", SUM),
        ("loss = mse(y, p)\nloss *= tf.reduce_mean(q)", UNKNOWN),
        ("loss = 1.\nfor i in range(3):\n    loss *= mse(y, p)", UNKNOWN),
        ("loss = 0.\nfor a, b in zip(y, p):\n    loss += mse(a, b)", UNKNOWN),
        ("loss = 0.\nfor i in range(8):\n    loss += mse(y[i], p[i])", UNKNOWN),
        # sums divided by the number of examples
        ("tf.reduce_sum(p) / 8.", MEAN),
        ("tf.reduce_sum(p) / 4.", SUM),
        ("tf.reduce_sum(p) / tf.cast(tf.shape(x)[0], tf.float32)", MEAN),
        ("tf.reduce_sum(p) / x.shape[0]", MEAN),
        ("tf.reduce_sum(p) / x.get_shape().as_list()[0]", MEAN),
        ("tf.reduce_sum(p) / x.shape[1]", SUM),
        ("tf.reduce_sum(p) / len(x)", MEAN),
        ("n = len(y)\nloss = tf.reduce_sum(p) * (1. / n)", MEAN),
        ("tf.reduce_sum(p) / float(BATCH)", MEAN),
        ("tf.reduce_sum(p / BATCH)", MEAN),
        ("tf.reduce_sum(tf.exp(p / BATCH))", UNKNOWN),
        ("tf.reduce_mean(p / BATCH)", UNKNOWN),
        ("tf.reduce_mean(p) / BATCH", UNKNOWN),
        ("tf.reduce_mean(p) * BATCH", SUM),
        ("tf.reduce_sum(p) / tf.sqrt(float(BATCH))", UNKNOWN),
        ("tf.reduce_sum(p) / (BATCH + 1)", UNKNOWN),
        ("p / BATCH", MEAN),
        ("tf.reduce_sum(p) / BATCH + sum(model.losses)", MEAN),
        ("(tf.reduce_sum(p) + sum(model.losses)) / BATCH", UNKNOWN),
        ("tf.reduce_sum(p) / tf.cast(tf.size(p), tf.float32)", MEAN),
        ("tf.divide(tf.reduce_sum(p), BATCH)", MEAN),
        ("tf.nn.compute_average_loss(tf.square(y - p))", MEAN),
        ("tf.nn.compute_average_loss(tf.square(y - p), global_batch_size=BATCH)", MEAN),
        ("tf.nn.compute_average_loss(tf.square(y - p), global_batch_size=4)", SUM),
        # masked means, with a mask of the data
        ("tf.reduce_sum(p * y) / tf.reduce_sum(y)", MEAN),
        ("mask = tf.cast(tf.not_equal(y, 0), p.dtype)\nloss = tf.reduce_sum(p * mask) / tf.reduce_sum(mask)", MEAN),
        ("tf.math.divide_no_nan(tf.reduce_sum(p * y), tf.reduce_sum(y))", MEAN),
        ("tf.reduce_sum(helper.features(p) * y) / tf.reduce_sum(y)", UNKNOWN),
        # sums
        ("tf.reduce_sum(p)", SUM),
        ("tf.reduce_sum(helper.features(p))", UNKNOWN),
        ("tf.reduce_mean(tf.reduce_sum(tf.square(y - p)))", SUM),
        ("tf.reduce_mean(tf.reduce_sum(tf.square(y - p), axis=0))", SUM),
        ("tf.reduce_mean(tf.keras.losses.MeanSquaredError(reduction='sum')(y, p))", SUM),
        ("tf.nn.l2_loss(y - p)", SUM),
        ("mse(y, p) + tf.nn.l2_loss(p)", UNKNOWN),
        ("sum(mse(a, b) for a, b in zip(y, p))", UNKNOWN),
        ("terms = [tf.nn.l2_loss(w)]\nterms.append(tf.reduce_sum(p))\nloss = mse(y, p) + tf.add_n(terms)", UNKNOWN),
        ("terms = [mse(y, p)]\nterms.extend(helper.more(p))\nloss = tf.add_n(terms)", UNKNOWN),
        # examples that depend on each other
        ("tf.reduce_sum(p * y) / tf.reduce_sum(p + y)", UNKNOWN),
        ("tf.reduce_sum(p * y) / (tf.reduce_sum(y) + 1)", UNKNOWN),
        ("tf.reduce_sum(p * y) / tf.maximum(tf.reduce_sum(y), 1)", UNKNOWN),
        ("tf.reduce_mean(tf.boolean_mask(tf.square(y - p), y > 0))", UNKNOWN),
        ("1 - tf.reduce_mean((2 * tf.reduce_sum(y * p) + 1) / (tf.reduce_sum(y) + tf.reduce_sum(p) + 1))", UNKNOWN),
        ("1 - tf.reduce_mean(2 * tf.reduce_sum(y * p, axis=0) / tf.reduce_sum(y + p, axis=0))", UNKNOWN),
        ("tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(8), p @ tf.transpose(q)))", UNKNOWN),
        ("tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(8), p))", UNKNOWN),
        ("tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(tf.eye(8), p))", UNKNOWN),
        ("tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(y, tf.matmul(p, q, transpose_b=True)))", UNKNOWN),
        ("mse(tf.eye(8), tf.matmul(p, q, transpose_b=True))", UNKNOWN),
        ("tf.keras.losses.SparseCategoricalCrossentropy()(tf.range(8), p @ tf.transpose(q))", UNKNOWN),
        ("tf.reduce_mean(tf.matmul(p, w, transpose_a=True))", UNKNOWN),
        ("tf.reduce_mean(tf.square(tf.expand_dims(p, 1) - tf.expand_dims(p, 0)))", UNKNOWN),
        ("tf.reduce_mean(tf.square(p[:, None] - p))", UNKNOWN),
        ("tf.reduce_mean(tf.square(p[:, :, None] - p))", UNKNOWN),
        ("tf.reduce_mean(tf.keras.losses.binary_crossentropy(y, p[:, :, None]))", UNKNOWN),
        ("tf.reduce_mean(tf.keras.losses.binary_crossentropy(y[:, None], p[:, None]))", UNKNOWN),
        ("tf.reduce_mean(tf.square(p[None, :] - p))", UNKNOWN),
        ("tf.reduce_mean(tf.square(p[:, tf.newaxis] - p))", UNKNOWN),
        ("tf.reduce_mean(tf.square(tf.reshape(p, [-1, 1, 3]) - p))", UNKNOWN),
        ("tf.reduce_mean(tf.broadcast_to(p, [8, 8, 3]) - y)", UNKNOWN),
        ("tf.reduce_mean(tf.square(y - p) / y.max())", MIXED),
        ("tf.reduce_mean(model(tf.reduce_sum(p)))", UNKNOWN),
        ("tf.reduce_mean(tf.reshape(p, [1, -1]) - y)", UNKNOWN),
        ("tf.reduce_mean(tf.square(y - p) / tf.reduce_max(tf.abs(y)))", MIXED),
        ("tf.reduce_mean((p - tf.reduce_mean(p)) ** 2)", MIXED),
        ("tf.reduce_mean(p - tf.reduce_min(p, axis=0))", MIXED),
        ("tf.reduce_mean(p / tf.math.reduce_std(p))", MIXED),
        ("tf.math.reduce_variance(p)", UNKNOWN),
        ("tf.reduce_sum(p) / tf.math.count_nonzero(y, dtype=tf.float32)", UNKNOWN),
        ("tf.reduce_mean(p / tf.norm(p))", MIXED),
        ("tf.reduce_mean(tf.nn.softmax(p, axis=0))", MIXED),
        ("tf.reduce_mean(tf.nn.l2_normalize(p, 0) * y)", MIXED),
        ("tf.reduce_mean(tf.square(y - p)[:4])", UNKNOWN),
        ("tf.reduce_mean(tf.square(y - p)[0])", UNKNOWN),
        ("tf.reduce_mean(tf.gather(tf.square(y - p), [0, 1]))", UNKNOWN),
        ("tf.reduce_mean(tf.sort(p, axis=0)[:4])", UNKNOWN),
        ("tf.sqrt(tf.reduce_mean(tf.square(y - p)))", UNKNOWN),
        ("tf.reduce_mean(p) * tf.reduce_mean(y)", UNKNOWN),
        ("tf.reduce_mean(p) / tf.reduce_mean(y)", UNKNOWN),
        ("tf.reduce_mean(p) + tf.reduce_sum(p)", UNKNOWN),
        # axes that are not known, or may be the batch's
        ("tf.reduce_mean(p, axis=helper.axis)", UNKNOWN),
        ("tf.reduce_mean(tf.reduce_sum(p, axis=axes(p)))", UNKNOWN),
        ("tf.reduce_mean(tf.reduce_sum(p, axis=-2))", UNKNOWN),
        ("tf.reduce_mean(tf.reduce_sum(tf.squeeze(p), axis=-1))", UNKNOWN),
        ("tf.reduce_mean(tf.reduce_sum(tf.keras.losses.mse(y, p), axis=-1))", UNKNOWN),
        # loss objects
        ("tf.keras.losses.MeanSquaredError()(y, p)", MEAN),
        ("tf.keras.losses.Huber(reduction='sum_over_batch_size')(y, p) + sum(model.losses)", MEAN),
        ("tf.keras.losses.SparseCategoricalCrossentropy(True)(y, p)", MEAN),
        ("tf.keras.losses.BinaryCrossentropy(from_logits=True)(tf.ones_like(p), p)", MEAN),
        ("tf.keras.losses.Huber(reduction=tf.keras.losses.Reduction.SUM)(y, p)", SUM),
        ("tf.keras.losses.MeanSquaredError(tf.keras.losses.Reduction.SUM)(y, p)", SUM),
        ("tf.keras.losses.MeanSquaredError('sum')(y, p)", SUM),
        ("tf.keras.losses.Huber(1.0, 'sum')(y, p)", SUM),
        ("tf.keras.losses.Huber(reduction='none')(y, p)", PER_EXAMPLE),
        ("tf.reduce_mean(tf.keras.losses.Huber(reduction='none')(y, p))", MEAN),
        ("tf.keras.losses.MeanSquaredError(**helper.settings)(y, p)", UNKNOWN),
        ("tf.keras.losses.MeanSquaredError(helper.settings)(y, p)", UNKNOWN),
        ("tf.keras.losses.SparseCategoricalCrossentropy(ignore_class=0)(y, p)", UNKNOWN),
        ("tf.keras.losses.SparseCategoricalCrossentropy(True, 0)(y, p)", UNKNOWN),
        ("mse(y, p, sample_weight=y)", MEAN),
        ("mse(y, p, y)", MEAN),
        ("mse(*helper.pair)", UNKNOWN),
        ("mse(y, p / tf.reduce_max(p))", MIXED),
        # imported things
        ("helper.imported(p)", UNKNOWN),
        ("tf.reduce_mean(helper.features(p) - helper.features(y))", MEAN),
        ("tf.reduce_mean(helper.own_sse(y, p))", UNKNOWN),
        ("helper.own_mse(y, p)", UNKNOWN),
        ("tf.reduce_mean(tf.math.unsorted_segment_sum(p, y, 3))", UNKNOWN),
    ],
)  # fmt: skip
def test_what_a_loss_is_over_the_batch(loss: str, expected: Reduction) -> None:
    assert reduction(loss, SETUP) is expected


SSE = "def own(y, p):\n    return tf.reduce_sum(tf.square(y - p))\n"
ROWS = "def own(y, p, axis=1):\n    d = y - p\n    return tf.reduce_sum(tf.square(d), axis=axis)\n"
DICE = """def own(y, p):
    both = tf.reduce_sum(y * p{0})
    return 1 - (2 * both + 1) / (tf.reduce_sum(y{0}) + tf.reduce_sum(p{0}) + 1)
"""
CLASS = """class Own({0}):
    def {1}(self, y, p):
        return {2}
own = Own()
"""
OWN_LOSS = """R = tf.keras.losses.Reduction
class Own(tf.keras.losses.Loss):
    def __init__({0}):
        super().__init__({1})
    def call(self, y, p):
        return {2}
own = Own({3})
"""


@pytest.mark.parametrize(
    ("setup", "loss", "expected"),
    [
        (SSE, "own(y, p)", SUM),
        (SSE, "tf.reduce_mean(own(y, p))", SUM),
        (ROWS, "tf.reduce_mean(own(y, p))", MEAN),
        (ROWS, "tf.reduce_mean(own(y, p, axis=0))", SUM),
        (DICE.format(""), "tf.reduce_mean(own(y, p))", UNKNOWN),
        (DICE.format(", axis=0"), "tf.reduce_mean(own(y, p))", UNKNOWN),
        (DICE.format(", axis=[1, 2]"), "tf.reduce_mean(own(y, p))", MEAN),
        ("own = lambda y, p: tf.reduce_mean(tf.square(y - p))", "own(y, p)", MEAN),
        ("own = lambda y, p: tf.reduce_sum(tf.square(y - p))", "tf.reduce_mean(own(y, p))", SUM),
        (CLASS.format("", "__call__", "tf.reduce_mean(tf.square(y - p))"), "own(y, p)", MEAN),
        (CLASS.format("", "__call__", "tf.reduce_sum(tf.square(y - p))"), "tf.reduce_mean(own(y, p))", SUM),
        (CLASS.format("tf.Module", "__call__", "tf.reduce_sum(y - p)"), "tf.reduce_mean(own(y, p))", SUM),
        (CLASS.format("tf.keras.losses.Loss", "call", "tf.reduce_sum(y)"), "tf.reduce_mean(own(y, p))", SUM),
        (CLASS.format("tf.keras.losses.Loss", "call", "tf.reduce_mean(y - p, axis=-1)"), "own(y, p)", UNKNOWN),
        (CLASS.format("tf.keras.losses.Loss", "call", "tf.keras.losses.mse(y, p)"), "own(y, p)", MEAN),
        (CLASS.format("tf.keras.losses.Loss", "call", "tf.reduce_mean(tf.square(y - p))"), "own(y, p)", MEAN),
        (CLASS.format("tf.keras.losses.Loss", "call", "tf.reduce_sum(tf.square(y - p))"), "own(y, p)", SUM),
        (CLASS.format("tf.keras.losses.Loss", "call", "tf.keras.losses.mse(y, p)"), "own(y, p, y)", UNKNOWN),
        (
            "class Own(tf.keras.losses.Loss):\n    def __init__(self, margin):\n        super().__init__(name='own')\n"
            "        self.margin = margin\n    def call(self, y, p):\n        return tf.abs(y - p)\nown = Own(2)\n",
            "own(y, p)",
            MEAN,
        ),
        (
            OWN_LOSS.format("self", "reduction='sum'", "tf.abs(y - p)", ""),
            "own(y, p)",
            SUM,
        ),
        (OWN_LOSS.format("self", "reduction='none'", "tf.abs(y - p)", ""), "tf.reduce_mean(own(y, p))", MEAN),
        (OWN_LOSS.format("self", "reduction='none'", "tf.abs(y - p)", ""), "own(y, p)", PER_EXAMPLE),
        (OWN_LOSS.format("self", "reduction=R.NONE", "tf.abs(y - p)", ""), "tf.reduce_mean(own(y, p))", MEAN),
        (OWN_LOSS.format("self, **kw", "**kw", "tf.abs(y - p)", "name='a'"), "own(y, p)", MEAN),
        (OWN_LOSS.format("self, **kw", "name='a', **kw", "tf.abs(y - p)", "reduction='sum'"), "own(y, p)", SUM),
        (OWN_LOSS.format("self, a=1, **kw", "**kw", "tf.abs(y - p)", "a=2"), "own(y, p)", MEAN),
        (OWN_LOSS.format("self, a=1, **kw", "**kw", "tf.abs(y - p)", "b=2"), "own(y, p)", UNKNOWN),
        (OWN_LOSS.format("self, **kw", "**other", "tf.abs(y - p)", ""), "own(y, p)", UNKNOWN),
        (OWN_LOSS.format("self, **kw", "reduction='none'", "y - p", "reduction='sum'"), "own(y, p)", PER_EXAMPLE),
        (OWN_LOSS.format("self", "reduction=given", "tf.abs(y - p)", ""), "own(y, p)", UNKNOWN),
        (OWN_LOSS.format("self", "reduction='none'", "y - p", "") + "own.reduction = 'sum'", "own(y, p)", UNKNOWN),
        (CLASS.format("tf.keras.Model", "call", "helper.losses(y, p)"), "a, b = own(x, y)\nloss = a + b", UNKNOWN),
        (CLASS.format("tf.keras.Model", "call", "helper.layers(y, p)"), "tf.reduce_mean(own(y, p))", MEAN),
        ("own = tf.keras.layers.Dense(1)", "tf.reduce_mean(own(p))", MEAN),
        ("own = helper.build()", "tf.reduce_mean(own(p))", MEAN),
        ("own = helper.build()", "tf.reduce_mean(own(y, p))", UNKNOWN),
        ("own = helper.build()", "tf.reduce_mean(tf.keras.losses.mse(y[:, 1:], own(x, y[:, :-1])))", MEAN),
        ("def own(z, t):\n    return net(z, t)\nnet = helper.build()", "tf.reduce_mean(own(x, True))", MEAN),
        ("from helper import own", "tf.reduce_mean(own(p))", MEAN),
        ("def own():\n    pass", "own()", UNKNOWN),
        # a VAE
        (
            "def kl(m, s):\n    return -0.5 * tf.reduce_sum(1 + s - tf.square(m) - tf.exp(s), axis=1)",
            "m, s = tf.split(model(x), 2, axis=1)\n"
            "z = tf.random.normal(tf.shape(m)) * tf.exp(0.5 * s) + m\n"
            "kept = tf.reduce_sum(tf.square(x - other(z)), axis=[1, 2, 3])\n"
            "loss = tf.reduce_mean(kept + kl(m, s))",
            MEAN,
        ),
        ("", "m, s = model(x)\nloss = tf.reduce_mean(tf.square(m) + s)", MEAN),
        ("", "m, s = tf.split(model(x), 2)\nloss = tf.reduce_mean(m - s)", UNKNOWN),
        # a gradient penalty
        (
            "def penalty(x, z):\n"
            "    a = tf.random.uniform([8, 1, 1, 1])\n"
            "    mixed = a * x + (1 - a) * z\n"
            "    with tf.GradientTape() as t:\n"
            "        t.watch(mixed)\n"
            "        d = other(mixed)\n"
            "    g = t.gradient(d, mixed)\n"
            "    return tf.reduce_mean(tf.square(tf.sqrt(tf.reduce_sum(tf.square(g), axis=[1, 2, 3])) - 1.))\n",
            "tf.reduce_mean(q) - tf.reduce_mean(p) + 10. * penalty(x, p)",
            MEAN,
        ),
        (
            "",
            "with tf.GradientTape() as t:\n    t.watch(x)\n    d = other(x)\n"
            "g = t.gradient(d, [x])[0]\nloss = tf.reduce_mean(tf.square(tf.norm(g, axis=1)))",
            MEAN,
        ),
        (
            "",
            "with tf.GradientTape() as t:\n    d = tf.reduce_mean(model(x))\n"
            "g = t.gradient(d, x)\nloss = tf.reduce_mean(tf.square(g))",
            UNKNOWN,
        ),
        (
            "",
            "with tf.GradientTape() as t:\n    d = tf.reduce_mean(model(x))\n"
            "g = t.gradient(d, model.trainable_variables)\nloss = tf.reduce_mean(tf.square(g[0]))",
            UNKNOWN,
        ),
        # what the file says elsewhere
        ("embed = tf.keras.layers.Embedding(9, 4, mask_zero=True)", "mse(y, p)", UNKNOWN),
        ("embed = tf.keras.layers.Embedding(9, 4, mask_zero=False)", "mse(y, p)", MEAN),
        ("embed = tf.keras.layers.Embedding(9, 4, mask_zero=True)", "tf.reduce_mean(tf.keras.losses.mse(y, p))", MEAN),
        ("mask = tf.keras.layers.Masking()", "mse(y, p)", UNKNOWN),
        ("layer = tf.keras.layers.Dense(1, activity_regularizer='l2')", "mse(y, p) + sum(model.losses)", UNKNOWN),
        ("layer = tf.keras.layers.Dense(1, activity_regularizer=None)", "mse(y, p) + sum(model.losses)", MEAN),
        ("helper.layer.add_loss(helper.term)", "mse(y, p) + sum(model.losses)", UNKNOWN),
        ("helper.layer.add_loss(helper.term)", "mse(y, p)", MEAN),
    ],
)  # fmt: skip
def test_a_loss_through_the_files_own_code(setup: str, loss: str, expected: Reduction) -> None:
    assert reduction(loss, setup) is expected


def test_a_network_that_names_itself_again_and_again_ends() -> None:
    layers = "".join("    h = h + tf.nn.relu(h)\n" for _ in range(15))
    setup = f"def own(h):\n{layers}    return h\n"
    assert reduction("tf.reduce_mean(tf.square(y - own(x)))", setup) is MEAN
