"""Variables: what they are called over the ranks, which belong together, and what is a random generator's state."""

import collections
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

# A tf.Variable or a Keras variable of any version: TensorFlow ships no types.
Variable = Any

# Which element of the state chooses the stream: the key of a tf.random.Generator, the seed of Keras 3's SeedGenerator.
_GENERATOR_STATES = {"StateVar": -1, "seed_generator_state": 0}
_COUNTED = re.compile(r"_\d+(?=$|[_/.:])")


class Key(NamedTuple):
    """What names a variable on all ranks: names repeat ("kernel"), so the how-manieth of its kind it is counts too.

    The numbers in which Keras makes names unique ("dense_1") are left out: they differ by rank as soon as one rank
    alone builds a model, while the occurrence still finds a partner of the same shape.
    """

    name: str
    dtype: str
    shape: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.name!r} ({self.dtype}, shape {self.shape}, number {self.occurrence + 1} of its kind)"


class Keys:
    """Gives out keys, counting how often each name, dtype and shape has come."""

    def __init__(self) -> None:
        self._counts: collections.Counter[tuple[str, str, str]] = collections.Counter()

    def next(self, name: str | None, dtype: tf.DType, shape: tf.TensorShape) -> Key:
        """The key of the variable that comes next, or is created next."""
        kind = (_plain(name), dtype.name, str(shape))
        self._counts[kind] += 1
        return Key(*kind, self._counts[kind] - 1)


def _plain(name: str | None) -> str:
    return _COUNTED.sub("", (name or "Variable").removesuffix(":0"))


def name_of(variable: Variable) -> str:
    """The longest name it has, for messages and keys: Keras 3's path where there is one."""
    return str(getattr(variable, "path", None) or variable.name)


def stream_element(name: str | None) -> int | None:
    """Which element of the variable of this name chooses a random stream; None if it is no generator's state."""
    return _GENERATOR_STATES.get(_plain(name).rsplit("/", 1)[-1])


def is_variable(thing: object) -> bool:
    """Whether it is a tf.Variable, or a Keras 3 variable that has its tf.Variable already."""
    if isinstance(thing, tf.Variable):
        return True
    return all(hasattr(thing, name) for name in ("assign", "handle", "dtype", "name"))


def is_followed(dtype: tf.DType) -> bool:
    """Whether variables of this dtype can be sent: numbers and bool. Strings and resources stay a rank's own."""
    return bool(dtype.is_floating or dtype.is_integer or dtype.is_bool or dtype.is_complex)


def keyed(variables: Iterable[Variable]) -> dict[Key, Variable]:
    """Variables by key, in their order; without generators' states and without what cannot be sent."""
    keys, found = Keys(), {}
    for variable in variables:
        dtype = tf.as_dtype(variable.dtype)
        if is_followed(dtype) and stream_element(variable.name) is None:
            found[keys.next(name_of(variable), dtype, tf.TensorShape(variable.shape))] = variable
    return found


def collect(things: Iterable[object]) -> list[Variable]:
    """All variables that exist now in models, optimizers, modules, checkpoints, variables and nested lists of them.

    Of a plain Python object its attributes are looked at, one level deep. Each variable comes once, in the order in
    which the objects hold it.

    Raises:
        TypeError: something that can hold no variables, such as a number or a string.
    """
    found: dict[int, Variable] = {}
    for thing in things:
        for variable in _within(thing):
            # A Keras 3 variable and the tf.Variable inside it are one and have one handle.
            found.setdefault(id(variable.handle), variable)
    return list(found.values())


def _within(thing: object) -> Iterator[Variable]:
    if is_variable(thing):
        yield thing
    elif isinstance(thing, Mapping):
        for value in thing.values():
            yield from _within(value)
    elif isinstance(thing, (list, tuple)):
        for value in thing:
            yield from _within(value)
    elif _is_trackable(thing):
        yield from _listed(thing)
        yield from _tracked(thing)
    elif thing is not None:
        yield from _attributes(thing)


def _is_trackable(thing: object) -> bool:
    return isinstance(thing, tf.__internal__.tracking.Trackable)


def _listed(thing: object) -> Iterator[Variable]:
    """What the object itself calls its variables."""
    try:
        variables = getattr(thing, "variables", ())
        variables = variables() if callable(variables) else variables
        yield from filter(is_variable, variables)
    except ValueError:
        # Keras 2 refuses to list the variables of a model that is not built.
        return


def _tracked(thing: object) -> Iterator[Variable]:
    """What TensorFlow would save with it: also a Keras model in a tf.Module, or a compiled model's optimizer."""
    try:
        yield from filter(is_variable, tf.train.TrackableView(thing).descendants())
    except ValueError:
        # A list or dict attribute that TensorFlow cannot save. The object's own list has to do.
        return


def _attributes(thing: object) -> Iterator[Variable]:
    """A class of the script's own that is no tf.Module, such as a hand-written optimizer."""
    if not hasattr(thing, "__dict__"):
        raise TypeError(
            f"{thing!r} holds no variables: dp.broadcast_state takes models, optimizers, tf.Modules, checkpoints, "
            "variables and lists of them"
        )
    for value in vars(thing).values():
        if is_variable(value) or _is_trackable(value) or isinstance(value, (list, tuple, dict)):
            yield from _contained(value)


def _contained(value: object) -> Iterator[Variable]:
    """`_within`, but what holds no variables is passed over."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _contained(each)
    elif is_variable(value) or _is_trackable(value):
        yield from _within(value)


def has_value(variable: Variable) -> bool:
    """Whether a variable has been initialised; outside of graphs only."""
    return bool(tf.raw_ops.VarIsInitializedOp(resource=variable.handle))


def raw(variable: Variable) -> Variable:
    """The `tf.Variable` in a Keras 3 variable, which an autocast scope lets look like a tensor of another dtype."""
    inner = getattr(variable, "_value", None)
    return inner if isinstance(inner, tf.Variable) else variable
