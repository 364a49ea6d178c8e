"""Sharded calls: a network that the script has done with goes, with all that was found of it."""

import copy
import gc
import weakref

import numpy as np
import tensorflow as tf

from tfdp.runtime.calls import own_code
from tfdp.runtime.calls.kept_with import kept_with

DEVICE_RANKS = ()
INIT = {"shard_calls": True}
APART = True  # sharded calls change what later cases would meet

ROWS = tf.constant(np.random.RandomState(2).normal(size=(8, 3)).astype("float32"))


class Model(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.inner, self.rate = tf.keras.layers.Dense(2), 0.5

    def call(self, x):
        return self.inner(x) * self.rate


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights, self.rate = tf.Variable(tf.ones([3, 2])), 0.5

    def __call__(self, x):
        return x @ self.weights * self.rate


def trained(made):
    network = made()
    network(ROWS)
    for step in (tf.function(lambda: gradients(network)), lambda: gradients(network)):
        step()
    return network


def gradients(network):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(network(ROWS) ** 2)
    return tape.gradient(loss, network.trainable_variables)


def case_networks_go_when_nothing_holds_them():
    for made in (Model, Module):
        found = weakref.ref(trained(made))
        gc.collect()
        assert found() is None, made


def case_a_layer_of_keras_is_its_own_after_a_look_as_before():
    network = trained(Model)
    with tf.GradientTape():
        network.inner(ROWS)
    assert kept_with(network.inner, "looks", {})
    assert own_code.code(network.inner) is None


def case_a_copy_is_looked_at_by_itself():
    network = trained(Module)
    other = copy.deepcopy(network)
    alike = copy.copy(network)
    for each in (other, alike):
        each.rate = 2.0
        assert np.allclose(gradients(each)[0], 16 * gradients(network)[0])
