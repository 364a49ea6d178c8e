"""Layers of Keras' own that are alike: what a look at one has found holds for the others, and for no other layers."""

import functools

import pytest
import tensorflow as tf

from tfdp.runtime.calls import alike

L = tf.keras.layers
IMAGES = tf.ones((2, 8, 8, 1))


def kind(layer, *given):
    given = given or (IMAGES,)
    layer(*given)
    return alike.kind_of(layer, (given, {}), (True,) * len(given))


def test_layers_of_the_same_settings_are_alike():
    for make in (lambda: L.Conv2D(3, 3), lambda: L.Dense(3, activation="relu"), L.Flatten):
        assert kind(make()) is not None
        assert kind(make()) == kind(make())
        hash(kind(make()))


@pytest.mark.parametrize(
    "other",
    [
        lambda: kind(L.Conv2D(3, 3, activation="relu")),
        lambda: kind(L.Conv2D(3, 3, activity_regularizer="l2")),
        lambda: kind(L.Conv2D(3, 3, activation=lambda x: x - tf.reduce_mean(x))),
        lambda: kind(L.Conv2D(3, 3), tf.ones((2, 9, 8, 1))),
        lambda: kind(L.Conv2D(3, 3, dtype="float16")),
        lambda: kind(L.Conv2D(3, 3, use_bias=False)),
        lambda: kind(L.Conv1D(3, 3), tf.ones((2, 8, 1))),
    ],
)
def test_others_are_not(other):
    assert other() != kind(L.Conv2D(3, 3))


def test_one_thing_given_twice_is_not_two():
    def added(one, other):
        layer = L.Add()
        layer([one, other])
        return alike.kind_of(layer, (([one, other],), {}), (True, True))

    assert added(IMAGES, IMAGES + 0) == added(IMAGES, IMAGES + 1)
    assert added(IMAGES, IMAGES) != added(IMAGES, IMAGES + 0)


class Own(L.Dense):
    """A layer of the script's own."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: L.Dropout(0.1),  # by whether it trains
        L.BatchNormalization,
        lambda: tf.keras.Sequential([L.Dense(3)]),
        lambda: L.TimeDistributed(L.Dense(3)),
        lambda: Own(3),
        lambda: L.Dense(3, activation=functools.partial(tf.nn.leaky_relu, alpha=0.3)),
    ],
)
def test_of_some_nothing_is_known(make):
    assert kind(make()) is None
