"""Lists, tuples and dictionaries that hold more than their elements: put together anew of these they are others.

What a divided call is given, and what it gives, is put together of other tensors: a dictionary with an attribute of its
own, as libraries give results, would have lost it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from . import carried
from .reach import is_of_users
from .sight import Undivided

_PLAIN = (list, tuple, dict)
_LEAVES = (
    tf.Tensor,
    tf.Variable,
    tf.DType,
    tf.TensorShape,
    np.ndarray,
    np.generic,
    bool,
    bytes,
    complex,
    float,
    int,
    str,
    type(None),
)


def holds_more(structure: Any) -> str:
    """What is said of a structure with such a container, or with one that cannot be taken apart; "" of others."""
    try:
        again = tf.nest.pack_sequence_as(structure, tf.nest.flatten(structure))
    except (TypeError, ValueError) as error:
        return f"{type(structure).__name__} that cannot be taken apart ({error})"
    return _differing(structure, again)


def _differing(one: Any, other: Any) -> str:
    """The class of a container in one structure that is another one in the other."""
    if isinstance(one, dict):
        pairs = [(value, dict.get(other, key)) for key, value in dict.items(one)]
    elif isinstance(one, list | tuple):
        pairs = list(zip(one, other, strict=True))
    else:  # leaves are the same things
        return "" if one is other else f"{type(one).__name__}, which would be another one inside"
    cls = type(one)
    if cls not in _PLAIN and not cls.__module__.startswith("tensorflow.") and not _have_the_same(one, other):
        return f"{cls.__name__} that holds more than its elements"
    return next((found for pair in pairs if (found := _differing(*pair))), "")


def _have_the_same(one: Any, other: Any) -> bool:
    mine, others = (getattr(each, "__dict__", {}) for each in (one, other))
    slots = {name for base in type(one).__mro__ for name in getattr(base, "__slots__", ()) if isinstance(name, str)}
    held = {name: getattr(one, name, None) for name in slots if hasattr(one, name)}
    again = {name: getattr(other, name, None) for name in slots if hasattr(other, name)}
    return type(one) is type(other) and _same({**mine, **held}, {**others, **again})


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    if one.keys() != other.keys():
        return False
    return all(value is other[name] or isinstance(value, _PLAIN) for name, value in one.items())


def _is_leaf(thing: Any) -> bool:
    """Whether it is a tensor, a number or the like, which holds nothing else."""
    return isinstance(thing, _LEAVES) and not is_of_users(thing)


def leaves_of(results: Any) -> list[Any]:
    """The leaves of what a call gives: tensors as arrays.

    Raises:
        Undivided: there is something else in it.
    """
    if more := holds_more(results):
        raise Undivided(f"gives a {more}")
    found = []
    for each in tf.nest.flatten(results):
        if isinstance(each, tf.__internal__.CompositeTensor):
            raise Undivided(f"gives a {type(each).__name__}")
        if isinstance(each, tf.Tensor) and each.dtype in (tf.string, tf.variant, tf.resource):
            raise Undivided("gives strings, or what has no numbers")
        if carried.has_one_mask_for_all(each):
            raise Undivided("gives a mask that has no row for each of the batch")
        if not _is_leaf(each):
            raise Undivided(f"gives a {type(each).__name__}, of which it is not known what tensors it holds")
        found.append(np.asarray(each) if isinstance(each, tf.Tensor) else each)
    return found
