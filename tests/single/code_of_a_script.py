"""Code of a script, some of which only computes; each of its functions is given rows."""

import collections
import dataclasses
import enum
import functools
import inspect
import math
import operator
import typing

import numpy as np
import tensorflow as tf

keras = tf.keras
L = keras.layers
STATE = {"calls": 0, "parts": []}
STATE_OF_LOGS = {"quiet": False}
SCALE = 0.5
LAYER = L.Dense(3)


class Fields(typing.NamedTuple):
    first: typing.Any
    last: typing.Any = None


@dataclasses.dataclass
class Settings:
    rate: float = 0.5
    names: tuple = ("a", "b")


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Counter:
    calls = 0

    def __bool__(self):
        Counter.calls += 1
        return True

    def __eq__(self, _):
        Counter.calls += 1
        return False

    def __hash__(self):
        Counter.calls += 1
        return 7

    def __iter__(self):
        Counter.calls += 1
        return iter(())

    def __getitem__(self, _):
        Counter.calls += 1
        return 1.0

    def __mul__(self, other):
        Counter.calls += 1
        return other

    __rmul__ = __mul__


class Asked:
    def __getattr__(self, name):
        STATE["calls"] += 1
        return 1.0


class Described:
    """A descriptor that keeps its value under its own name, and counts."""

    def __set_name__(self, _, name):
        self.name = name

    def __get__(self, thing, _=None):
        STATE["calls"] += 1
        return vars(thing).get(self.name)

    def __set__(self, thing, value):
        vars(thing)[self.name] = value


class AsksForAll:
    rate = 1.0

    def __getattribute__(self, name):
        STATE["calls"] += 1
        return object.__getattribute__(self, name)


@dataclasses.dataclass
class CountedSettings:
    rate: float = 0.5

    def __setattr__(self, name, value):
        STATE["calls"] += 1
        object.__setattr__(self, name, value)


@dataclasses.dataclass
class Spread:
    mean: typing.Any
    count: int = 0

    @property
    def size(self):
        STATE["calls"] += 1
        return 2.0

    def __add__(self, other):
        STATE["calls"] += 1
        return self.mean + other


class Called:
    def __call__(self, x):
        return x

    @property
    def size(self):
        STATE["calls"] += 1
        return 2.0


class Going:
    def __iter__(self):
        STATE["calls"] += 1
        return iter([1, 2])

    def __ne__(self, other):
        STATE["calls"] += 1
        return True


class Module(tf.Module):
    """What code is called of."""

    shared, described = 2.0, Described()

    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.ones([3, 3]))
        self.rate, self.mode, self.settings = 0.5, Mode.FAST, Settings()
        self.parts, self.named = [tf.Variable(1.0), tf.Variable(2.0)], {"a": 1.0, "b": 2.0}
        self.buffer, self.counter, self.asked = np.ones(3, np.float32), Counter(), Asked()
        self.generator, self.numbers = np.random.default_rng(0), iter(range(9))
        self.lazily = collections.defaultdict(list)
        self.function = functools.partial(scaled, by=2.0)
        self.going, self.called = Going(), Called()
        self.debug, self.described, self.asks = False, 1.0, AsksForAll()
        self.__hidden = 3.0

    @property
    def double(self):
        return self.rate * 2

    @property
    def counted(self):
        self.rate += 1
        return self.rate

    @staticmethod
    def halved(x):
        return x / 2

    def helper(self, x, *others, by=1.0, **options):
        for each in others:
            x = x + each
        return x * by * options.get("more", 1.0)

    def hidden(self):
        return self.__hidden


def scaled(x, by=SCALE):
    return x * by


def counting(x):
    STATE["calls"] += 1
    return x


MODULE = Module()


def product(x):
    return tf.tanh(x @ MODULE.kernel) + MODULE.rate


def shapes(x):
    size = tf.shape(x)[0]
    width = x.shape[-1]
    assert width is not None, f"a width of {width}"
    return tf.reshape(x, [size, width // 3, 3]) / math.sqrt(width) + tf.zeros([size, 1, 1])


def containers(x):
    found = []
    for index, (part, name) in enumerate(zip(MODULE.parts, MODULE.named, strict=True)):
        found.append(x * part + MODULE.named[name] + index)
    by_name = {f"part {name}": each for name, each in zip(MODULE.named, found, strict=True)}
    by_name["last"] = x
    first, *others = [by_name[key] for key in sorted(by_name)]
    total = sum(each for each in others) + first
    total += x
    return tf.concat([total, *found], axis=-1)


def helpers(x):
    def inner(y, by=2.0):
        return tf.nn.relu(y) * by

    double = lambda y: inner(y, by=MODULE.double)  # noqa: E731
    doubled = double(x)
    return MODULE.helper(doubled, x, by=SCALE, more=2.0) + MODULE.halved(x) + MODULE.function(x) + MODULE.hidden()


def choices(x, training=None):
    if MODULE.mode is Mode.FAST or training:
        x = tf.nn.dropout(x, 0.5)
    x = x if MODULE.settings.rate > 0 else -x
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: x * 2)


def records(x):
    found = Fields(x, last=x * 2)
    return Fields(found.first + found.last + Settings(0.25).rate)


def arrays(x):
    return x * np.sqrt(3.0).astype("float32") + np.arange(3, dtype=np.float32) + MODULE.buffer[0]


def pruned(x):
    if MODULE.debug:
        STATE["calls"] += 1
    return x


def prints(x):
    print("shape", MODULE.rate)
    return x


def taken_by_any_name(x):
    return getattr(MODULE, f"{'ra'}te") * x if hasattr(MODULE, "rate") and isinstance(MODULE.parts, list) else x


class Sampling(L.Layer):
    def __init__(self):
        super().__init__()
        if hasattr(keras, "ops"):
            self.seeds = keras.random.SeedGenerator(3)
        self.inner = keras.Sequential([L.Dense(3, name="first"), L.Dense(3)])

    def call(self, x):
        if len(x.shape) < 2:
            raise OSError(f"rows of {x.shape}")
        drawn = keras.random.normal(tf.shape(x), seed=self.seeds) if hasattr(self, "seeds") else tf.random.normal([3])
        x = L.ReLU()(self.inner.get_layer("first")(x))
        return L.add([x, L.Activation(scaled)(x)]) + drawn


class CountingBySetting(Sampling):
    def __setattr__(self, name, value):
        STATE["calls"] += 1
        super().__setattr__(name, value)


class CountingInAGradient(L.Layer):
    @tf.custom_gradient
    def passed(self, x):
        return x, counting

    def call(self, x):
        return self.passed(x)


class CountingByALayer(Sampling):
    def call(self, x):
        return L.Activation(counting)(x)


PLAIN = [product, shapes, containers, helpers, choices, records, arrays, pruned, prints, taken_by_any_name]


def counts_in_a_global(x):
    STATE["calls"] += 1
    return x


def counts_in_an_attribute(x):
    MODULE.rate = MODULE.rate + 1
    return x


def counts_in_a_class(x):
    Module.shared += 1
    return x


def counts_through_a_helper(x):
    return scaled(counting(x))


def counts_in_a_property(x):
    return x * MODULE.counted


def counts_by_truth(x):
    return x if MODULE.counter else -x


def counts_by_comparison(x):
    return x if MODULE.counter == 3 else -x


def counts_by_key(x):
    return {1: x}[MODULE.counter]


def counts_by_element(x):
    return x * MODULE.counter[0]


def counts_by_operator(x):
    return x * MODULE.counter


def counts_by_iteration(x):
    return tf.add_n([x, *(each for each in MODULE.counter)])


def counts_by_attribute(x):
    return x * MODULE.asked.rate


def counts_by_a_descriptor(x):
    return x * MODULE.described


def counts_by_all_attributes(x):
    return x * MODULE.asks.rate


def counts_in_a_data_class(x):
    return x * CountedSettings(0.5).rate


def counts_in_an_operator_of_a_data_class(x):
    return Spread(x) + x


def counts_in_a_property_of_a_data_class(x):
    return x * Spread(x).size


def counts_in_a_property_by_a_framework(x):
    return x * tf.nest.map_structure(lambda each: each.size, [MODULE.called])[0]


def counts_by_membership(x):
    return x if 3 in MODULE.going else -x


def counts_by_inequality(x):
    return x if MODULE.going != 3 else -x


def counts_by_a_hash(x):
    return x * {MODULE.counter: 1.0}[MODULE.counter]


def counts_in_a_mapped_function(x):
    return tf.map_fn(counting, x)


def counts_in_a_text(x):
    return tf.reshape(x, [4, 3], name=f"{MODULE.counter}")


def appends(x):
    STATE["parts"].append(x)
    return x


def appends_by_operator(x):
    parts = STATE["parts"]
    parts += [x]
    return x


def makes_elements(x):
    return x if MODULE.lazily["missing"] else -x


def writes_into_an_array(x):
    MODULE.buffer[0] = 2.0
    return x


def writes_into_a_view(x):
    view = MODULE.buffer[1:]
    view += 1.0
    return x


def writes_into_a_reshaped_array(x):
    view = np.reshape(MODULE.buffer, [3, 1])
    view *= 2.0
    return x


def writes_by_an_argument(x):
    np.add(MODULE.buffer, 1.0, out=MODULE.buffer)
    return x


def assigns_a_variable(x):
    MODULE.kernel.assign_add(MODULE.kernel)
    return x


def draws_in_python(x):
    return x * MODULE.generator.normal()


def draws_of_numpy(x):
    return x * np.random.rand()


def takes_from_an_iterator(x):
    return x * next(MODULE.numbers)


def asks_for_identity(x):
    return x if x is MODULE.kernel else -x


def asks_for_id(x):
    return x * (id(x) % 2)


def asks_who_calls(x):
    return x * len(inspect.stack())


def asks_for_code(x):
    return x * len(scaled.__code__.co_varnames)


def asks_of_what_kind_a_number_is(x):
    return x if isinstance(tf.shape(x)[0], int) else -x


def makes_a_text_of_a_shape(x):
    return x * len(str(x.shape))


def makes_a_text_by_an_operator(x):
    return x * len("%s" % x.shape)  # noqa: UP031


def catches(x):
    try:
        return x * float(x[0, 0])
    except TypeError:
        return x


def writes_into_an_array_that_it_holds(x):
    held = [MODULE.buffer]
    held[0] += 1.0
    return x


def writes_into_an_array_that_is_given_back(x):
    tf.nest.flatten([MODULE.buffer])[0].__imul__(2.0)
    found = tf.nest.flatten([MODULE.buffer])[0]
    found += 1.0
    return x


def writes_by_an_operator_in_place(x):
    operator.imul(MODULE.buffer, 2.0)
    return x


def writes_by_named_arguments(x):
    np.add(MODULE.buffer, 1.0, **{"out": MODULE.buffer})
    return x


def counts_by_settings_that_are_spread(x):
    def quietly(x, quiet=True):
        return x if quiet else counting(x)

    return quietly(x, **{"quiet": False, **STATE_OF_LOGS})


def counts_by_settings_that_are_joined(x):
    found = STATE_OF_LOGS | {"other": 1}
    return x if found["quiet"] else counting(x)


def counts_in_a_default(x):
    def inner(y, number=counting(1.0)):  # noqa: B008
        return y * number

    return x if inner is None else x * 2.0


def counts_in_a_name(x):
    with tf.name_scope(name=str(counting(1.0))):
        return x * 2.0


def counts_in_a_key_of_sorting(x):
    found = [1.0, 2.0]
    found.sort(key=counting)
    return x * found[0]


def asks_for_a_static_value(x):
    return x if tf.get_static_value(MODULE.kernel) is None else -x


def asks_for_losses(x):
    return x * len(LAYER.losses)


def imports(x):
    import json

    return x * len(json.dumps({}))


def opens_a_file(x):
    with open("log.txt", "a") as log:
        log.write("called")
    return x


def changes_a_default(x, seen=[]):  # noqa: B006
    seen.append(1)
    return x * len(seen)


def changes_what_it_is_given(x):
    x["second"] = x["first"]
    return x["first"]


def makes_an_object(x):
    return x * Counter()


def recursive(x, left=3):
    return recursive(x, left - 1) if left else x


def yields(x):
    yield x


def makes_a_variable(x):
    return x * tf.Variable(1.0)


OF_PYTHON = np.frompyfunc(counting, 1, 1)


def counts_in_a_ufunc(x):
    return x * OF_PYTHON(3.0)


def shows_in_python(x):
    return tf.py_function(counting, [x], tf.float32)


class Plain(L.Layer):
    def __init__(self):
        super().__init__()
        self.dense, self.norm = L.Dense(3, activation=tf.nn.gelu), L.LayerNormalization()
        self.blocks = [L.Dense(3) for _ in range(2)]

    def call(self, x, training=False, mask=None):
        for block in self.blocks:
            x = x + block(x)
        x = self.norm(self.dense(x), training=training)
        return x if mask is None else x * tf.cast(mask, x.dtype)


class Counting(Plain):
    def call(self, x):
        self.seen = x
        return super().call(x)


class Derived(Plain):
    def call(self, x):
        return super().call(x, training=True) * 2


class Losing(Plain):
    def compute_mask(self, *_):
        STATE["calls"] += 1
