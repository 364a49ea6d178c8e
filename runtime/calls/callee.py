"""What is called, and what it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from . import carried, report
from .batch_look import Call
from .containers import holds_more
from .examples import is_tensor, kind_of
from .guard import Code
from .kept import Kept
from .plain import has_own_methods


def _none(_: Any) -> list[Any]:
    return []


class Callee(NamedTuple):
    """What is called: the function, by what it is known, what messages call it, and what a look may change.

    is_atom: whether nothing of what it calls is to be divided. state: by what it is another one, besides its owner.
    code: that of the script's own in it, if there is any. takes_arrays: whether that gets NumPy's arrays as they are.
    settings: what of the state must be equal on all workers.
    """

    call: Call
    owner: Any
    name: str
    kept: Callable[[], Kept]
    is_atom: bool
    state: Any = None
    code: Code | None = None
    takes_arrays: bool = False
    settings: Callable[[Any], list[Any]] = _none

    @property
    def runs_own_code_eagerly(self) -> bool:
        """Whether Python runs at each call, and is the script's."""
        return self.code is not None and tf.executing_eagerly()


class Given(NamedTuple):
    """The arguments and options of a call, and which leaves are tensors with a row for each of the batch.

    arrays: by what tells them apart, the leaves that are arrays of NumPy's for the code that is called.
    """

    structure: Any
    leaves: list[Any]
    by_rows: tuple[bool, ...]
    arrays: frozenset[int] = frozenset()

    @property
    def kind(self) -> Any:
        """What a look holds for: values but numbers, and which tensors there are, one of them twice perhaps."""
        kinds = map(kind_of, self.leaves, self.by_rows)
        first = {id(each): number for number, each in reversed(list(enumerate(self.leaves))) if is_tensor(each)}
        alike = tuple(first.get(id(each)) for each in self.leaves)
        arrays = tuple(id(each) in self.arrays for each in self.leaves)
        return str(tf.nest.map_structure(lambda _: None, self.structure)), alike, arrays, *kinds


def _own_container(structure: Any) -> str:
    """The class of a container that code of the script's own goes through, or ""."""
    if not isinstance(structure, dict | list | tuple):
        return ""
    cls = type(structure)
    if cls not in (dict, list, tuple) and has_own_methods(cls):
        return cls.__name__
    held = dict.values(structure) if isinstance(structure, dict) else structure
    return next((found for each in held if (found := _own_container(each))), "")


def given_to(callee: Callee, structure: Any) -> Given | str:
    """The arguments, or why they cannot be divided."""
    if container := _own_container(structure):
        return f"takes a {container}, a container of the script's own"
    if more := holds_more(structure):
        return f"takes a {more}"
    flat = tf.nest.flatten(structure)
    arrays = [x for x in flat if isinstance(x, np.ndarray)]
    if any(x.dtype.kind != "f" for x in arrays) and callee.takes_arrays:  # whose arithmetic is another one in NumPy
        return "takes NumPy's arrays of other numbers than floating-point ones: give it tensors, such as tf.constant(x)"
    made = {id(x): tf.convert_to_tensor(x) for x in arrays}
    leaves = [made.get(id(x), x) for x in flat]
    tensors = [each for each in leaves if is_tensor(each)]
    other = [each for each in leaves if not is_tensor(each) and isinstance(each, tf.__internal__.CompositeTensor)]
    if other and not all(isinstance(each, tf.Variable) for each in other):
        return f"takes a {type(other[0]).__name__}"
    if any(map(carried.is_marked, flat)):
        return "takes a tensor with an attribute of the script's own"
    if any(map(carried.has_one_mask_for_all, flat)):
        return "takes a mask that has no row for each of the batch"
    if any(each.dtype in (tf.string, tf.variant, tf.resource) for each in tensors):
        return "takes strings"
    if any(each.shape.rank is None for each in tensors):
        return "takes a tensor of unknown rank"
    first = next((each for each in tensors if each.shape.rank), None)
    if first is None:
        held = [each for each in leaves if isinstance(each, tf.Variable) and each.shape.rank]
        return report.SINGLE if held and all(each.shape[0] == 1 for each in held) else "takes no tensors"
    if first.shape[0] in (0, 1):
        return report.SINGLE if first.shape[0] else report.NONE
    by_rows = tuple(is_tensor(x) and bool(x.shape.rank) and x.shape[0] == first.shape[0] for x in leaves)
    own = frozenset(map(id, made.values())) if callee.takes_arrays else frozenset()
    return Given(tf.nest.pack_sequence_as(structure, leaves), leaves, by_rows, own)
