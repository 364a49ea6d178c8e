"""Whether the step by which Keras validates a model may be traced once more than in one process."""

import functools

import pytest
import tensorflow as tf

from tfdp.runtime.calls.plain import verdict_of_step

keras = tf.keras
ROWS = tf.ones([4, 3])
SEEN = []
# Keras 2 calls penalties by functions of its own, of which it is not known that they only compute.
IN_KERAS_3 = pytest.mark.skipif(not hasattr(keras, "ops"), reason="such a step of Keras 2 is validated whole")


class Stock(keras.Model):
    def __init__(self, **options):
        super().__init__()
        self.inner = keras.layers.Dense(2, **options)

    def call(self, x):
        return self.inner(x)


class CountingCall(Stock):
    def call(self, x):
        SEEN.append(1)
        return self.inner(x)


class CountingStep(Stock):
    def test_step(self, data):
        SEEN.append(1)
        return super().test_step(data)


class ListedMetrics(Stock):
    @property
    def metrics(self):
        return [self.inner]


class CountedMetrics(Stock):
    @property
    def metrics(self):
        SEEN.append(1)
        return []


class Worst(keras.metrics.Metric):
    def __init__(self):
        super().__init__(name="worst")
        self.most = self.add_weight(name="most", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        del sample_weight
        self.most.assign(tf.maximum(self.most, tf.reduce_max(tf.abs(y_pred - y_true))))

    def result(self):
        return self.most


class CountingWorst(Worst):
    def result(self):
        SEEN.append(1)
        return self.most


class CalledWorst(Worst):
    def __call__(self, *arguments, **options):
        SEEN.append(1)
        return super().__call__(*arguments, **options)


def error(y_true, y_pred):
    return tf.reduce_mean(tf.abs(y_true - y_pred), axis=-1)


def counting_error(y_true, y_pred):
    SEEN.append(1)
    return error(y_true, y_pred)


def penalty(weights):
    return 0.01 * tf.reduce_sum(weights**2)


def counting_penalty(weights):
    SEEN.append(1)
    return penalty(weights)


def reason(model, *compiled_with):
    model(ROWS)
    return verdict_of_step(model, compiled_with).reason


@pytest.mark.parametrize(
    ("made", "compiled_with"),
    [
        (Stock, ("sgd", "mse", ["mae"])),
        (Stock, (keras.optimizers.Adam(), keras.losses.Huber(), [keras.metrics.AUC()])),
        (Stock, (error, [error], {"a": error})),
        (Stock, (keras.losses.MeanSquaredError(), [keras.metrics.MeanMetricWrapper(error)], Worst())),
        (ListedMetrics, ()),
        pytest.param(functools.partial(Stock, kernel_regularizer="l2"), (), marks=IN_KERAS_3),
        pytest.param(functools.partial(Stock, kernel_regularizer=penalty), (), marks=IN_KERAS_3),
    ],
)
def test_steps_that_only_compute(made, compiled_with):
    assert not reason(made(), *compiled_with)


@pytest.mark.parametrize(
    ("made", "compiled_with"),
    [
        (CountingCall, ()),
        (CountingStep, ()),
        (CountedMetrics, ()),
        (Stock, (counting_error,)),
        (Stock, ([counting_error],)),
        (Stock, (functools.partial(counting_error),)),
        (Stock, (keras.metrics.MeanMetricWrapper(counting_error),)),
        (Stock, (CountingWorst(),)),
        (Stock, (CalledWorst(),)),
        (functools.partial(Stock, kernel_regularizer=counting_penalty), ()),
        (functools.partial(Stock, activity_regularizer=counting_penalty), ()),
    ],
)
def test_steps_that_may_do_more(made, compiled_with):
    assert reason(made(), *compiled_with)
