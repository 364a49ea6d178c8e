"""Batches to look at a call with: the one that is there, or others of its shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..job import current
from . import carried, general
from .rows import Split, taken
from .sight import Undivided

# Tried where another size than the batch's is not known: of a text, of an image.
_LENGTHS = 8, 64
_SHARE = 0.3  # of flags that are made up
_SCALE = 30.0  # between rows of neighbouring workers


def lengths(structure: Any) -> Sequence[int]:
    """What to try for sizes that are not known; one number where all are."""
    tensors = [each for each in tf.nest.flatten(structure) if is_tensor(each)]
    return _LENGTHS if any(None in each.shape[1:] for each in tensors) else _LENGTHS[:1]


def of(structure: Any, by_rows: Sequence[bool], unknown: int) -> Iterator[Any]:
    """The same structure with tensors of some rows that have values: as they are; unlike each other; and these in
    general position besides, so that no nought hides anything.

    unknown: for sizes not known.

    Raises:
        Undivided: there can be none.
    """
    leaves = tf.nest.flatten(structure)
    tensors = [each for each in leaves if is_tensor(each)]
    are_here = all(isinstance(each, np.ndarray) or hasattr(each, "numpy") for each in tensors)
    random, rows = np.random.default_rng(0), 2 * current().topology.size + 1
    made: dict[int, Any] = {}
    for each, of_rows in zip(leaves, by_rows, strict=True):
        if is_tensor(each) and id(each) not in made:
            most = rows if of_rows else None
            made[id(each)] = (
                _here(each, most) if are_here else _made_up(each, rows if of_rows else None, unknown, random, most)
            )
    found = [made.get(id(each), each) for each in leaves]
    yield tf.nest.pack_sequence_as(structure, found)
    unlike: dict[int, Any] = {}
    for each, of_rows in zip(found, by_rows, strict=True):
        if of_rows and id(each) not in unlike:
            unlike[id(each)] = _unlike(each)
    yield tf.nest.pack_sequence_as(structure, [unlike.get(id(each), each) for each in found])
    given = {id(each): each for each in found}
    apart = {key: _apart(given[key], each, seed) for seed, (key, each) in enumerate(unlike.items())}
    yield tf.nest.pack_sequence_as(structure, [apart.get(id(each), each) for each in found])


def _apart(tensor: Any, unlike: Any, seed: int) -> Any:
    """Numbers in general position; whole ones of those that there are, which may be places in a table."""
    known = np.unique(np.asarray(tensor))
    if tensor.dtype.is_bool or (tensor.shape.rank > 1 and len(known) == 1 and _lets_all_through(tensor)):
        found = tf.identity(unlike)
    elif tensor.dtype.is_floating and tensor.shape.rank > 1 and len(known) == 2:  # such as a mask of 0 and -1e9
        found = tf.constant(np.where(_flags(tensor.shape.as_list()), known[1], known[0]), tensor.dtype)
    elif tensor.dtype.is_floating:
        found = general.moved(unlike, seed)
    else:
        known = known if len(known) > 1 else np.union1d(known, [0, 1])
        found = tf.constant(np.random.default_rng(seed).choice(known, tensor.shape.as_list()), tensor.dtype)
    carried.put(carried.of(unlike), found, tf.identity)
    return found


def _unlike(tensor: Any) -> Any:
    """Rows of different workers differ by magnitudes, so that what goes by all of them goes by a few. None becomes
    larger than it is: it may be a number of a row in a table."""
    rows = tensor.shape[0]
    ranks = np.arange(rows) // -(-rows // current().topology.size)
    if tensor.dtype.is_floating:
        scales = tf.reshape(
            tf.constant(_SCALE ** -(ranks.max() - ranks), tensor.dtype), [-1] + [1] * (tensor.shape.rank - 1)
        )
        found = tensor * scales
    elif tensor.dtype.is_bool:
        found = tf.constant(_flags(tensor.shape.as_list()))
    else:
        found = tf.gather(tensor, np.where(ranks == 0, np.arange(rows), 0))
    if tensor.shape.rank > 1 and not tensor.dtype.is_bool and _lets_all_through(tensor):
        found = tf.cast(_flags(tensor.shape.as_list()), tensor.dtype)
    carried.put(carried.of(tensor), found, tf.identity)
    return found


def _lets_all_through(tensor: Any) -> bool:
    """Whether it may be a mask by numbers, which are 1."""
    return bool(tf.reduce_all(tensor == tf.ones([], tensor.dtype)))


def _flags(shape: Sequence[int]) -> Any:
    """Such as a mask, which may let all through now: each row lets something through, and neighbours differ."""
    found = np.random.default_rng(0).random(shape) > _SHARE
    if len(shape) > 1:
        for number, row in enumerate(found):
            row[..., number % shape[-1]] ^= True
        found[..., :1] = True
    return found


def is_tensor(thing: Any) -> bool:
    """Whether it is a dense tensor, or an array that becomes one."""
    return isinstance(thing, tf.Tensor | np.ndarray)


def kind_of(leaf: Any, by_rows: bool) -> Any:
    """What a look holds for, of one of the arguments: not a number's value."""
    if is_tensor(leaf):
        return leaf.dtype, leaf.shape.rank, by_rows
    if isinstance(leaf, tf.Variable):
        return type(leaf), leaf.dtype, tuple(leaf.shape)
    # A number may be that of the step; one that is as good as a flag may not.
    flag = leaf is None or isinstance(leaf, str) or (isinstance(leaf, int | float) and leaf in (0, 1))
    return leaf if flag else type(leaf)


def exactly(leaves: Sequence[Any]) -> Any:
    """By what Python tells arguments of a graph apart: shapes of tensors, what they carry, and other values; None where
    that is not all."""
    found: list[Any] = []
    for each in leaves:
        if isinstance(each, tf.Tensor):
            has = [None if held is None else (held.dtype, _shape(held)) for held in (each, *carried.of(each))]
            found.append((*has, carried.is_marked(each)))
        elif each is None or isinstance(each, bool | int | float | str):
            found.append((type(each), repr(each)))
        else:
            return None
    return tuple(found)


def _shape(tensor: Any) -> Any:
    return None if tensor.shape.rank is None else tuple(tensor.shape)


def _here(tensor: Any, most: int | None) -> Any:
    """Its values, of at most so many rows."""

    def some(each: Any) -> Any:
        each = tf.convert_to_tensor(each)
        return tf.identity(each if most is None else each[:most])

    found = some(tensor)
    carried.put(carried.of(tensor), found, some)
    return found


def _made_up(tensor: Any, rows: int | None, unknown: int, random: Any, most: int | None) -> Any:
    if isinstance(tensor, np.ndarray) or hasattr(tensor, "numpy"):
        found = _here(tensor, most)
        if rows is None or len(found) == rows:
            return found
    sizes = [unknown if size is None else size for size in tensor.shape]
    if rows is not None:
        sizes[0] = rows if tensor.shape[0] is None else min(sizes[0], most or sizes[0])
    found = _numbers(tf.as_dtype(tensor.dtype), sizes, random)
    carried.put(
        carried.of(tensor), found, lambda mask: _numbers(tf.as_dtype(mask.dtype), sizes[: mask.shape.rank], random)
    )
    return found


def _numbers(dtype: Any, sizes: Sequence[int], random: Any) -> Any:
    """Of an integer 0 and 1, which any table of embeddings has."""
    if dtype.is_bool:
        return tf.constant(random.random(sizes) > _SHARE)
    if dtype.is_integer:
        return tf.constant(random.integers(0, 2, sizes), dtype)
    if not (dtype.is_floating or dtype.is_complex):
        raise Undivided(f"takes {dtype.name}")
    return tf.cast(tf.constant(random.random(sizes)), dtype)


def rows(tensor: Any, split: Split, rank: int) -> Any:
    """A worker's rows, with what the tensor carries."""
    found = taken(tensor, split, rank)
    carried.put(carried.of(tensor), found, lambda each: taken(each, split, rank))
    return found
