"""Code of the script's own that changes something in Python when it is called: a look at it is not to be seen."""

import collections
import contextlib
import io
import itertools

import numpy as np
import tensorflow as tf

from . import _counters, by_rows, counts, descend_by_hand, keras, kind
from .told import Net, steps


@kind(divided="beside", sample=True)
def calls_that_are_counted_in_many_ways():
    yield from counted(_counters.WAYS)


@kind(divided="beside")
def calls_that_are_counted_in_other_ways():
    yield from counted(_counters.OTHER_WAYS)


def counted(ways):
    for way in ways:
        _counters.hidden.calls = 0
        counts.reset()
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


@kind(divided=False, may_refuse=("draws numbers in Python",))
def bits_that_are_drawn():
    bits = np.random.PCG64(3)
    yield from steps(Net(before=lambda x: x * (1 + bits.random_raw() % 7)))


@kind(divided=False, may_refuse=("uses an iterator", "calls __next__", "uses a method-wrapper"))
def numbers_that_a_dictionary_asks_for():
    numbers = collections.defaultdict(itertools.count(1).__next__)
    yield from steps(Net(before=lambda x: x * numbers[len(numbers)]))


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


@kind(divided="beside", sample=True)
def functions_that_count_and_say_when_they_are_compiled():
    net, out = Compiled(), io.StringIO()
    with contextlib.redirect_stdout(out):
        for found in steps(net):
            yield found
            yield [], tf.constant([net.traces, out.getvalue().count("compiles")])


@kind(divided="partly", sample=True)
def mask_over_words_as_long_as_the_batch():
    """Of 2 rows of 2 words, first with all words."""
    for dtype in ("bool", "int32", "float64"):
        yield from attending(dtype)


def attending(dtype):
    attention = keras.layers.MultiHeadAttention(1, 4, use_bias=False)
    rows = tf.constant(np.random.RandomState(0).rand(2, 2, 4))
    attention(rows, rows)
    weights = attention.trainable_variables
    for number in range(4):
        mask = tf.constant(np.tril(np.ones((2, 2))) if number > 1 else np.ones((2, 2)), dtype)
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


@kind(divided="partly", may_refuse=("scale of a Headed",), sample=True)
def function_that_is_compiled_by_an_evaluation_first():
    net = Headed()
    yield [], tf.reduce_mean(net(tf.ones([8, 6], tf.float64)))
    net.scale = 1.0
    yield from steps(net)


@kind(divided="beside", may_refuse=("which tf.function compiles",))
def function_that_is_compiled_by_training_first():
    net = Headed()
    yield from steps(net)
    net.scale = 1.0
    yield [], tf.reduce_mean(net(tf.ones([8, 6], tf.float64)))


@kind(divided="beside")
def function_that_is_compiled_twice_with_the_same_numbers():
    net = Headed()
    yield [], tf.reduce_mean(net(tf.ones([8, 6], tf.float64)))
    yield from steps(net)
    yield [], tf.reduce_mean(net(tf.ones([8, 6], tf.float64)))


class Handed(Net):
    """It is given something that it calls with rows."""

    def __call__(self, x, thing):
        return super().__call__(thing(x))


def handed(thing, number):
    net = Handed()
    for found in steps(lambda x: net(x, thing=thing), weights=[net.first, net.last]):
        yield found
        yield [], tf.constant(float(number()))


@kind(divided=False, may_refuse=("takes a deque",))
def queue_that_is_given_to_a_call():
    queue, net = collections.deque(maxlen=3), Handed()

    def queued(rows, held):
        held.append(1)
        return net(rows, thing=lambda x: x * len(held))

    function = by_rows(queued)
    for found in steps(lambda x: function(x, queue), weights=[net.first, net.last]):
        yield found
        yield [], tf.constant(float(len(queue)))


class Noise:
    """It draws from a generator of its own."""

    def __init__(self):
        self.numbers = np.random.default_rng(3)

    def __call__(self, x):
        return x * self.numbers.uniform(0.5, 1.5)


@kind(divided="beside", sample=True)
def things_that_count_and_are_given_to_a_call():
    for way in (_counters.by_key, _counters.by_single, _counters.in_a_thread):
        yield from handed(*way())


@kind(divided=False, may_refuse=("draws numbers in Python",))
def things_that_draw_and_are_given_to_a_call():
    noise = Noise()
    yield from handed(noise, noise.numbers.normal)


class Settings:
    """It counts what it is asked for and has not."""

    def __init__(self):
        self.unknown = []

    def __getattr__(self, name):
        self.unknown.append(name)


@kind(divided="beside", sample=True)
def settings_that_are_asked_for_what_they_have():
    settings = Settings()
    settings.scale = 0.5
    yield from handed(lambda x: x * settings.scale, lambda: len(settings.unknown))


@kind(divided=False, may_refuse=("asks stop_recording of a gradient tape",))
def nothing_is_recorded_for_a_while():
    tapes = []

    def before(x):
        with tapes[-1].stop_recording():
            return x * 0.5

    net = Net(before=before)
    for number in range(3):
        with tf.GradientTape() as tape:
            tapes.append(tape)
            loss = tf.reduce_mean(net(tf.constant(np.random.rand(8, 6))) ** 2)
        for weight, found in zip((net.first, net.last), tape.gradient(loss, [net.first, net.last]), strict=True):
            weight.assign_sub(0.1 * found * (number + 1))
        yield [net.first, net.last], loss


@kind(divided="partly", may_refuse=("nothing in this script could be sharded",))
def layers_that_are_made_in_a_call_and_named():
    """Keras 2 builds each of them, as they are called for the first time: whole."""
    net = Net(before=lambda x: keras.layers.Activation("tanh")(x) * 0.5)
    for found in steps(net):
        yield found
        yield [], tf.constant([float(ord(each)) for each in keras.layers.Activation("tanh").name])


class Steps:
    """What it calls `next` is none of Python's."""

    def __init__(self):
        self.number = 0

    def next(self):
        self.number += 1
        return min(self.number, 3)


@kind(divided="beside")
def steps_by_a_method_called_next():
    counter = Steps()
    for found in steps(Net(before=lambda x: x * counter.next() / 3)):
        yield found
        yield [], tf.constant(float(counter.number))
