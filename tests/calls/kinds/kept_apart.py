"""Code of the script's own that changes something in Python when it is called: a look at it is not to be seen."""

import collections
import contextlib
import functools
import io

import numpy as np
import tensorflow as tf

from . import descend_by_hand, keras, kind
from .told import Net, steps

__count = 0


class Counter:
    calls = 0

    def __hash__(self):
        return 7

    def __enter__(self):
        hidden.calls += 1
        return hidden.calls

    def __exit__(self, *_):
        return False

    def __getitem__(self, _):
        hidden.calls += 1
        return hidden.calls


class Hidden:
    calls = 0


hidden = Hidden()


class WithDict:
    pass


class WithSlots(WithDict):
    __slots__ = ("calls",)

    def __init__(self):
        self.calls = 0


class Pair(collections.namedtuple("Pair", "a b")):
    calls = 0


class Array(np.ndarray):
    calls = 0


def counted_by(counter):
    """Each call is counted in an attribute of an object, by which rows are scaled."""

    def before(x):
        counter.calls = counter.calls + 1
        return x * (1 + counter.calls / 9)

    return before, lambda: counter.calls


def by_key():
    counters = {Counter(): 1.0}

    def before(x):
        for counter, share in counters.items():
            counter.calls += 1
            x = x * (1 + share * counter.calls / 9)
        return x

    return before, lambda: next(iter(counters)).calls


def by_context():
    def before(x):
        with Counter() as calls:
            return x * (1 + calls / 9)

    return before, lambda: hidden.calls


def by_item():
    counter = Counter()
    return lambda x: x * (1 + counter[0] / 9), lambda: hidden.calls


def in_turn():
    shares = {"a": 0.5, "b": 1.0, "c": 2.0}

    def before(x):
        name = next(iter(shares))
        shares[name] = shares.pop(name)
        return x * shares[name]

    return before, lambda: sum(10**place * share for place, share in enumerate(shares.values()))


def by_global():
    def before(x):
        global __count  # noqa: PLW0603
        __count += 1
        return x * (1 + __count / 9)

    return before, lambda: __count


def within_many():
    held = [[0] for _ in range(5000)]

    def before(x):
        held[2500][0] += 1
        return x * (1 + held[2500][0] / 9)

    return before, lambda: held[2500][0]


def with_attribute(thing):
    thing.calls = 0
    return thing


@tf.function
def compiled(x):
    return x * 1.0


WAYS = (
    by_key,
    by_context,
    by_item,
    in_turn,
    by_global,
    within_many,
    lambda: counted_by(WithSlots()),
    lambda: counted_by(Pair(1, 2)),
    lambda: counted_by(np.zeros(2).view(Array)),
    lambda: counted_by(with_attribute(functools.partial(max, 1))),
    lambda: counted_by(with_attribute(tf.Variable(1.0))),
    lambda: counted_by(with_attribute(keras.layers.Dense(2))),
    lambda: counted_by(with_attribute(keras.optimizers.SGD(0.1))),
    lambda: counted_by(with_attribute(compiled)),
)


@kind(divided="partly", sample=True)
def calls_that_are_counted_in_many_ways():
    for way in WAYS:
        hidden.calls = 0
        before, calls = way()
        for found in steps(Net(before=before)):
            yield found
            yield [], tf.constant(float(calls()))


class Drawn:
    def __init__(self):
        self.numbers = np.random.default_rng(3)

    def __getitem__(self, _):
        return self.numbers.normal()


@kind(divided=False, may_refuse=("draws numbers in Python",))
def numbers_that_are_drawn_for_an_item():
    drawn = Drawn()
    yield from steps(Net(before=lambda x: x * drawn[0]))


@kind(divided="partly", may_refuse=("nothing in this script could be sharded",), sample=True)
def rows_with_an_attribute_of_the_scripts():
    def given(rows):
        found = tf.constant(rows)
        found.temperature = 0.5
        return found

    yield from steps(Net(before=lambda x: x * getattr(x, "temperature", 1.0)), given=given)


class Compiled(Net):
    """What is called inside it is compiled once, and says so."""

    traces = 0

    def __init__(self):
        super().__init__(before=self.compiled)

    @tf.function
    def compiled(self, x):
        self.traces += 1
        print("compiles")
        return x * 0.5


@kind(sample=True)
def functions_that_count_and_say_when_they_are_compiled():
    net, out = Compiled(), io.StringIO()
    with contextlib.redirect_stdout(out):
        for found in steps(net):
            yield found
            yield [], tf.constant([net.traces, out.getvalue().count("compiles")])


@kind(divided="partly", sample=True)
def mask_over_words_as_long_as_the_batch():
    """Of 2 rows of 2 words, first with all words."""
    attention = keras.layers.MultiHeadAttention(1, 4, use_bias=False)
    rows = tf.constant(np.random.RandomState(0).rand(2, 2, 4))
    attention(rows, rows)
    weights = attention.trainable_variables
    for number in range(4):
        mask = tf.constant(np.tril(np.ones((2, 2), bool)) if number > 1 else np.ones((2, 2), bool))
        yield weights, descend_by_hand(0.1, weights, lambda mask=mask: attended(attention, rows, mask))


def attended(attention, rows, mask):
    return tf.reduce_sum(attention(rows, rows, attention_mask=mask) ** 2)


class Headed(Net):
    """It reads what it divides by when it is compiled."""

    scale = 4.0

    def __init__(self):
        super().__init__(before=self.compiled)

    @tf.function
    def compiled(self, x):
        return x / self.scale


@kind(divided="partly", may_refuse=("which tf.function compiles",), sample=True)
def function_that_is_compiled_by_an_evaluation_first():
    net = Headed()
    yield [], tf.reduce_mean(net(tf.ones([8, 6], tf.float64)))
    net.scale = 1.0
    yield from steps(net)


@kind(divided="partly", may_refuse=("which tf.function compiles",))
def function_that_is_compiled_by_training_first():
    net = Headed()
    yield from steps(net)
    net.scale = 1.0
    yield [], tf.reduce_mean(net(tf.ones([8, 6], tf.float64)))


@kind
def function_that_is_compiled_twice_with_the_same_numbers():
    net = Headed()
    yield [], tf.reduce_mean(net(tf.ones([8, 6], tf.float64)))
    yield from steps(net)
    yield [], tf.reduce_mean(net(tf.ones([8, 6], tf.float64)))
