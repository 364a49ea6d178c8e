"""What a function that is being traced computes before it runs, as TensorFlow takes initialisers out of it."""

import logging

import pytest
import tensorflow as tf

from tfdp.runtime.framework import lifted


def traced(made):
    """What is lifted of what `made` gives in a function, and what the function gives when it runs."""
    found = []

    @tf.function
    def run(number):
        tensor = made(number)
        found.append(lifted(tensor))
        return tensor

    result = run(tf.constant(2.0))
    return found[0], result.numpy()


def test_what_depends_on_nothing_has_its_value():
    value, result = traced(lambda _: tf.random.normal([3], seed=7) + tf.ones([3]))
    assert (value.numpy() == result).all()
    tf.random.set_seed(5)
    value, result = traced(lambda _: tf.random.normal([3]))
    assert (value.numpy() == result).all()


def test_what_depends_on_an_argument_or_a_variable_has_none():
    variable = tf.Variable([1.0, 2.0])
    for made in (lambda number: number * 2, lambda _: variable * 2.0):
        value, _ = traced(made)
        assert value is None


def test_what_fails_has_none_and_fails_when_the_function_runs():
    found = []

    @tf.function
    def run():
        checked = tf.debugging.check_numerics(tf.math.log(tf.constant([-1.0])), "a logarithm")
        found.append(lifted(checked))
        return checked

    with pytest.raises(tf.errors.InvalidArgumentError, match="a logarithm"):
        run()
    assert found == [None]


def test_many_are_lifted_without_a_warning(caplog):
    caplog.set_level(logging.WARNING, logger="tensorflow")
    for number in range(9):
        assert traced(lambda _, number=number: tf.ones([3]) * number)[0].shape == (3,)
    assert "lifted.<locals>" not in caplog.text  # of functions of this file there may be one
