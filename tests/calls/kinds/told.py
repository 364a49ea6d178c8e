"""Code of the script's own that asks in Python what it is given, or how it is run, and tells by what it gives."""

import collections

import numpy as np
import tensorflow as tf

from . import descend_by_hand, examples, kind, square

X, Y = examples(24, 6)


class Net(tf.Module):
    """Layers of raw variables, with what is done before and after them."""

    def __init__(self, before=lambda x: x, after=lambda _, found: found):
        super().__init__()
        numbers = np.random.RandomState(0)
        self.first, self.last = tf.Variable(numbers.randn(6, 4) / 2), tf.Variable(numbers.randn(4, 1))
        self.before, self.after = before, after

    def __call__(self, x):
        hidden = tf.tanh(self.before(x) @ self.first)
        return self.after(hidden, hidden @ self.last)


class Flag:
    raised = False


def steps(net, loss=square, given=tf.constant):
    weights = [net.first, net.last]
    for number in range(4):
        Flag.raised = number > 1
        chosen = np.random.permutation(24)[:8]
        rows = given(X[chosen])
        yield weights, descend_by_hand(0.1, weights, lambda rows=rows, chosen=chosen: loss(net(rows), Y[chosen]))
        yield [], np.array(rows)


class Result(dict):
    """As libraries give results."""

    temperature = 1.0

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def with_temperature(hidden, found):
    result = Result(hidden=hidden, found=found)
    object.__setattr__(result, "temperature", 0.5)
    return result


def scaled(result, wanted):
    return square(result.found / result.temperature, wanted) + tf.reduce_mean(result.hidden**2)


@kind(divided=False, may_refuse=("holds more than its elements",), sample=True)
def result_with_an_attribute_of_its_own():
    yield from steps(Net(after=with_temperature), scaled)


def with_temperature_later(hidden, found):
    return with_temperature(hidden, found) if Flag.raised else Result(hidden=hidden, found=found)


@kind(divided=False, may_refuse=("holds more than its elements",))
def result_that_gets_an_attribute_of_its_own_later():
    yield from steps(Net(after=with_temperature_later), scaled)


@kind
def result_of_a_class_of_its_own_that_holds_its_elements():
    yield from steps(Net(after=lambda hidden, found: Result(hidden=hidden, found=found)), scaled)


def quartered_if_raw(x):
    return tf.convert_to_tensor(x) / 4 if isinstance(x, np.ndarray) else x


def halved_in_place(x):
    x *= 0.5
    return x


@kind(divided=False, may_refuse=("takes NumPy's arrays",), sample=True)
def array_that_is_known_for_one():
    yield from steps(Net(before=quartered_if_raw), given=np.array)


@kind(divided=False, may_refuse=("takes NumPy's arrays",))
def array_that_is_changed_in_place():
    yield from steps(Net(before=halved_in_place), given=np.array)


@kind
def array_that_is_only_computed_with():
    yield from steps(Net(before=lambda x: x * 2.0), given=np.array)


def centred_where_it_runs_eagerly(x):
    return x - tf.reduce_mean(x, 0) / 2 if Flag.raised and tf.executing_eagerly() else x


def centred_where_there_are_numbers(x):
    return x - tf.reduce_mean(x, 0) / 2 if Flag.raised and hasattr(x, "numpy") else x


@kind(divided=False, may_refuse=("which it did not do when it was looked at",), sample=True)
def rows_that_are_centred_where_code_runs_eagerly():
    yield from steps(Net(before=centred_where_it_runs_eagerly))


@kind(divided=False, may_refuse=("which it did not do when it was looked at",))
def rows_that_are_centred_where_tensors_have_numbers():
    yield from steps(Net(before=centred_where_there_are_numbers))


@kind(divided=False, may_refuse=("nothing in this script could be sharded",))
def keys_that_have_no_order():
    result = lambda hidden, found: collections.OrderedDict([(0, found), ("hidden", hidden)])  # noqa: E731
    yield from steps(Net(after=result), lambda result, wanted: square(result[0], wanted))
