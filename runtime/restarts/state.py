"""What a `fit` goes on from: all variables, and what numbers are drawn from."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
import tensorflow as tf

from ..calls import spend_from, spent
from ..framework import has_value, name_of
from ..start import every_variable
from .plain import is_framework

_K = TypeVar("_K")


class Kind(NamedTuple):
    """By which a variable that is made later is known to be the one that was made before."""

    name: str
    dtype: str
    shape: str


def kind_of(variable: Any) -> Kind:
    """Of a variable with a value."""
    return Kind(name_of(variable).removesuffix(":0"), variable.dtype.name, str(variable.shape))


def variables() -> dict[int, Any]:
    """Those that exist and have a value, by how many had been made before."""
    found = enumerate(every_variable())
    return {ordinal: each for ordinal, each in found if each is not None and is_kept(each)}


def is_kept(variable: Any) -> bool:
    """Whether it has a value that can be read here."""
    return isinstance(variable.handle, tf.__internal__.EagerTensor) and has_value(variable)


def values_of(held: Mapping[_K, Any]) -> dict[_K, Any]:
    """Their numbers, arrays of their shapes and dtypes."""
    return {key: np.asarray(tf.convert_to_tensor(each).numpy()) for key, each in held.items()}


def drawn() -> dict[str, Any]:
    """Where Python's, NumPy's and TensorFlow's generators are, and how many seeds were asked for."""
    return {"draws": spent()}


def put_back(values: Mapping[int, Any], about: Mapping[str, Any]) -> None:
    """Give variables and generators what they had."""
    held = variables()
    for ordinal, value in values.items():
        if ordinal in held:  # else it is waiting to be dropped there, and is gone here, or is yet to be made
            give(held[ordinal], value)
    draw_on(about)


def draw_on(about: Mapping[str, Any]) -> None:
    """Let the generators be where they were."""
    spend_from(about["draws"])


def give(variable: Any, value: Any) -> None:
    """Its value, an array of its shape."""
    with tf.init_scope():
        variable.assign(tf.convert_to_tensor(value, tf.as_dtype(variable.dtype)))


DRAWN = "what random numbers are drawn from"
Fingerprint = dict[tuple[int, str], str]


def prints_of(held: Mapping[_K, Any]) -> dict[_K, int]:
    """64 bits of each variable's bytes: 25 million parameters take 4 ms."""
    found = {}
    for key, each in held.items():
        value = tf.reshape(tf.convert_to_tensor(each), [1, -1])
        if value.dtype != tf.string:
            found[key] = int.from_bytes(
                tf.raw_ops.Fingerprint(data=value, method="farmhash64").numpy().tobytes(), "little"
            )
    return found


def fingerprint(data: tuple[Any, ...], others: Mapping[str, Any]) -> Fingerprint:
    """What the state of this process is: a digest of each variable, of the generators, of each of `data` and of what
    `others` names, by a number and a name."""
    held = variables()
    found = {(ordinal, kind_of(held[ordinal]).name): digest(value) for ordinal, value in values_of(held).items()}
    found[len(every_variable()), "the number of variables"] = ""
    found[-1, DRAWN] = draws()
    found |= {(-2, name): digest(each) for name, each in others.items()}
    return found | {(-3 - number, "the data"): digest(_plain(each)) for number, each in enumerate(data)}


def draws() -> str:
    """A digest of what numbers are drawn from."""
    return digest(drawn())


def difference(before: Fingerprint, now: Fingerprint) -> str:
    """What is not alike, in words; empty for nothing. Variables that one process has dropped already do not count."""
    differ = [name for key, value in before.items() if now.get(key, value) != value for _, name in [key]]
    (counted,) = (key for key in before if key[1] == "the number of variables")
    return counted[1] if counted not in now else next(iter(differ), "")


def _plain(data: Any) -> Any:
    """Arrays as they are; of a dataset what is known of it."""
    if isinstance(data, tf.data.Dataset):
        return str(data.element_spec), int(data.cardinality())
    return np.asarray(data)


def digest(thing: Any) -> str:
    """Of an array, or of anything that can be pickled."""
    found = hashlib.blake2b(digest_size=8)
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        found.update(f"{thing.dtype.name} {thing.shape}".encode())
        found.update(np.ascontiguousarray(thing).reshape(-1).view(np.uint8).data)  # which is no copy
    else:
        found.update(pickled(thing))
    return found.hexdigest()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.fast = True  # it does not matter which parts are one object

    def reducer_override(self, value: Any) -> Any:
        """What frameworks put in the place of lists and dicts that are attributes."""
        if not is_framework(type(value)):
            return NotImplemented
        made = next((each for each in (dict, list, tuple, set) if isinstance(value, each)), None)
        return NotImplemented if made is None else (made, (made(value),))


def pickled(value: Any) -> bytes:
    """Equal bytes for equal values."""
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()
