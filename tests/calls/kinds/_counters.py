"""Ways in which code of the script's own may count its calls, for kinds of training in `kept_apart`."""

import collections
import functools
import threading
import typing

import numpy as np
import tensorflow as tf

import kinds

from . import counts, keras

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


class Meta(type):
    def counted(cls):
        hidden.calls += 1
        return hidden.calls


class Made(metaclass=Meta):
    def __new__(cls):
        hidden.calls += 1
        return super().__new__(cls)

    def __repr__(self):
        hidden.calls += 1
        return "made"


def by_metaclass():
    return lambda x: x * (1 + Made.counted() / 9), lambda: hidden.calls


def by_making():
    def before(x):
        Made()
        return x * (1 + hidden.calls / 9)

    return before, lambda: hidden.calls


def by_text():
    made = Made()

    def before(x):
        return x * (len(repr(made)) + hidden.calls / 9)

    return before, lambda: hidden.calls


def by_import():
    def before(x):
        from .counts import counted

        return x * (1 + counted() / 9)

    return before, counts.number


def by_module_in_a_package():
    return lambda x: x * (1 + kinds.counts.counted() / 9), counts.number


def by_name():
    return lambda x: x * (1 + getattr(counts, "_counted"[1:])() / 9), counts.number


def in_a_thread():
    local = threading.local()
    local.held = [[0]]

    def before(x):
        local.held[0][0] += 1
        return x * (1 + local.held[0][0] / 9)

    return before, lambda: local.held[0][0]


def among_arrays():
    held = [np.zeros(1) for _ in range(1500)]

    def before(x):
        held[1200][0] += 1
        return x * (1 + held[1200][0] / 9)

    return before, lambda: held[1200][0]


class Single(type):
    made: typing.ClassVar = {}

    def __call__(cls):
        if cls not in cls.made:
            cls.made[cls] = super().__call__()
        return cls.made[cls]


class OnlyOne(metaclass=Single):
    def __init__(self):
        self.calls = 0


def by_single():
    OnlyOne().calls = 0

    def before(x):
        OnlyOne().calls += 1
        return x * (1 + OnlyOne().calls / 9)

    return before, lambda: OnlyOne().calls


class Stage:
    pass


class First(Stage):
    calls = 0


def by_subclass():
    First.calls = 0

    def before(x):
        for stage in Stage.__subclasses__():
            stage.calls += 1
        return x * (1 + First.calls / 9)

    return before, lambda: First.calls


__steps__ = 0


def by_global_of_the_scripts():
    def before(x):
        global __steps__  # noqa: PLW0603
        __steps__ += 1
        return x * (1 + __steps__ / 9)

    return before, lambda: __steps__


def on(thing):
    """An object that the script hangs on one of Keras' or TensorFlow's."""
    thing.counter, thing.book = Hidden(), {"calls": [0]}

    def before(x):
        thing.counter.calls += 1
        thing.book["calls"][0] += 1
        return x * (1 + thing.counter.calls * thing.book["calls"][0] / 9)

    return before, lambda: thing.counter.calls + thing.book["calls"][0]


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
OTHER_WAYS = (
    by_metaclass,
    by_making,
    by_text,
    by_import,
    by_module_in_a_package,
    by_name,
    in_a_thread,
    among_arrays,
    lambda: on(tf.Variable(1.0)),
    lambda: on(keras.layers.Dense(2)),
    lambda: on(keras.optimizers.SGD(0.1)),
    by_single,
    by_subclass,
    by_global_of_the_scripts,
)
