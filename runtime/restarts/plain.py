"""Numbers, texts, arrays, small tensors, lists and the like: what can be kept of a script, and given to another."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import pathlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from ..keras import PACKAGES

_PLAIN = (
    *(bool, int, float, complex, np.generic, type(None), str, bytes, range, slice, enum.Enum, pathlib.PurePath),
    *(tf.DType, np.dtype, tf.TensorShape),
    *(datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, fractions.Fraction),
)
IN_PLACE = (list, dict, set, collections.deque, bytearray)
HOLD = (*IN_PLACE, tuple, frozenset)
EXACTLY = (*HOLD, collections.OrderedDict, collections.defaultdict, collections.Counter)
DRAW = (random.Random, np.random.RandomState, np.random.Generator)
_DEPTH = 40


def is_framework(cls: type) -> bool:
    """Whether a class is TensorFlow's or Keras'."""
    return cls.__module__.split(".")[0] in ("tensorflow", *PACKAGES)


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether all of it is numbers, texts, arrays and the like."""
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, np.ndarray):
        return bool(value.dtype != object) and type(value) is np.ndarray
    if isinstance(value, tf.__internal__.EagerTensor):
        return value.dtype != tf.resource and bool(value.dtype != tf.variant)
    if depth > _DEPTH or not isinstance(value, HOLD) or not _is_exactly(value):
        return False
    if isinstance(value, dict):
        is_made_plainly = not isinstance(value, collections.defaultdict) or isinstance(value.default_factory, type)
        return is_made_plainly and all(is_plain(k, depth + 1) and is_plain(v, depth + 1) for k, v in value.items())
    return all(is_plain(each, depth + 1) for each in value)


def _is_exactly(value: Any) -> bool:
    """Whether a container has nothing but what it contains: named tuples, and what frameworks put in the place of
    lists and dicts that are attributes, do not."""
    cls = type(value)
    is_named = isinstance(value, tuple) and hasattr(cls, "_fields")
    return cls in EXACTLY or is_named or is_framework(cls)


def parts_of(value: Any) -> Iterator[Any]:
    """What of a plain thing can change, itself not included."""
    for each in (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, HOLD) else ():
        if isinstance(each, (*IN_PLACE, np.ndarray)):
            yield each
        yield from parts_of(each)


def can_be_refilled(held: Any, value: Any) -> bool:
    """Whether one thing can be given all that another has, and stay the same."""
    if isinstance(held, np.ndarray) and isinstance(value, np.ndarray):
        return held.shape == value.shape and held.dtype == value.dtype and held.flags.writeable
    return any(isinstance(held, each) and isinstance(value, each) for each in IN_PLACE)


def refill(held: Any, put: Callable[[Any], None], value: Any) -> None:
    """In place where that can be: other names may stand for the same object."""
    if isinstance(held, np.ndarray) and can_be_refilled(held, value):
        held[...] = value
    elif can_be_refilled(held, value):
        held.clear()
        (held.update if isinstance(held, (dict, set)) else held.extend)(value)
    else:
        put(value)


def state_of(generator: Any) -> Any:
    """Where a generator of random numbers is."""
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    is_legacy = isinstance(generator, np.random.RandomState)
    return generator.get_state() if is_legacy else generator.bit_generator.state


def draw_from(generator: Any, state: Any) -> None:
    """Let it be there."""
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state
