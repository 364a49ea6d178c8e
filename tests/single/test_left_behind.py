"""Which tensors that a call has made the script can still come to. TensorFlow 2.15 loses attributes of tensors."""

import contextlib
import gc

import pytest
import tensorflow as tf

from tfdp.runtime.calls.observed import Observer, observed

LIST = []


def made():
    return tf.constant([1.0]) + 1.0


def carrying(tensor):
    """A tensor with a mask and the logits behind it, as Keras leaves them."""
    other = tf.nn.softmax(tensor)
    other._keras_logits, other._keras_mask = tensor, tensor > 0.0
    return other


def kept_by_a_generator():
    def numbers(tensor=None):
        tensor = made()
        yield 1
        yield tensor

    running = numbers()
    next(running)
    return running


class Holder:
    def __init__(self, name):
        setattr(self, name, made())


@pytest.mark.parametrize("call", [lambda: made() * 2.0, lambda: carrying(made()), lambda: carrying(carrying(made()))])
def test_nothing_is_left(call):
    assert _left(lambda: [call(), None][1]) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: LIST.append(made()),
        lambda: LIST.append(carrying(made())),
        lambda: LIST.extend(_with_its_carrier(made())),
        kept_by_a_generator,
        lambda: Holder("found"),
        lambda: Holder("_keras_mask"),
    ],
)
def test_what_the_script_holds_is_left(call):
    try:
        assert _left(call) > 0
    finally:
        LIST.clear()


def _with_its_carrier(tensor):
    carrying(tensor)
    return [tensor]


@contextlib.contextmanager
def gc_off():
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _left(call):
    observer = Observer(set(), ())
    with observed(observer.seen):
        kept = call()
    count = len(observer.left(()))
    del kept
    return count


def test_what_is_given_is_not_from_outside():
    given, other = tf.constant([1.0]), tf.constant([2.0])
    observer = Observer(set(), [given])
    with observed(observer.seen):
        tf.add(given, tf.constant([3.0])) * other
    assert [id(each) for each in observer.from_outside()] == [id(other)]


def test_the_collector_is_asked_only_where_something_is_left():
    passes = []
    gc.callbacks.append(lambda *said: passes.append(said))
    try:
        with gc_off():
            given = tf.constant([1.0])
            observer = Observer(set(), [given])
            with observed(observer.seen):
                results = [given * 2.0 + made()]
            found = observer.from_outside(), observer.left(results), list(passes)
            left = observer.left([])
        assert found == ([], [], [])
        assert [id(each) for each in left] == [id(each) for each in results]
        assert passes
    finally:
        gc.callbacks.pop()
