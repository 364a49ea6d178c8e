"""What in a graph follows from the number of rows, which a worker's rows and the whole batch do not share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf


class Count(NamedTuple):
    """So many times the number of rows of the batch."""

    times: int


# An element of a tensor of sizes, in the order of its memory: a number, a Count, or None for what is not known.
Entry = int | Count | None


_AXES = 16  # at most, of a tensor
_ATTRIBUTES = ("axis", "begin_mask", "ellipsis_mask", "end_mask", "new_axis_mask", "shrink_axis_mask")


def shape_of(tensor: Any, factor: int) -> list[Entry]:
    """The elements of the shape of a tensor with `factor` rows for each of the batch."""
    return [Count(factor), *tensor.shape[1:].as_list()]


def number_of(tensor: Any, factor: int) -> list[Entry]:
    """How many elements it has."""
    return [_product(shape_of(tensor, factor))]


def followed(kind: str, inputs: Sequence[Any], known: Sequence[list[Entry] | None], attrs: Any) -> list[Entry] | None:
    """The elements of what an operation gives of sizes; None where they are not known.

    known: for each input that is one of sizes its elements; None for others.
    """
    does = _OPERATIONS.get(kind)
    entries = [fixed(each) if found is None else found for each, found in zip(inputs, known, strict=True)]
    return None if does is None or any(each is None for each in entries) else does(entries, inputs, attrs)


def are_fixed(entries: Sequence[Entry] | None) -> bool:
    """Whether they are the same for each number of rows."""
    return entries is not None and all(isinstance(each, int) for each in entries)


def fixed(tensor: Any) -> list[Entry] | None:
    """The elements of one that does not follow from the number of rows, as far as they are known; None where they are
    not."""
    tensor = tf.convert_to_tensor(tensor)
    value = tf.get_static_value(tensor)
    if value is not None:
        return [int(each) for each in np.ravel(value)] if np.issubdtype(np.asarray(value).dtype, np.integer) else None
    made = None if tf.executing_eagerly() else tensor.op
    if made is not None and made.type == "Shape" and made.inputs[0].shape.rank is not None:
        return list(made.inputs[0].shape)
    if made is None or made.type not in _OPERATIONS or not tensor.dtype.is_integer:
        return None
    entries = [fixed(each) for each in made.inputs]
    attrs = {name: made.get_attr(name) for name in _ATTRIBUTES if name in made.node_def.attr}
    return None if None in entries else _OPERATIONS[made.type](entries, made.inputs, attrs)


def _product(entries: Sequence[Entry]) -> Entry:
    counts = [each for each in entries if isinstance(each, Count)]
    if None in entries or len(counts) > 1:
        return None
    number = math.prod(each for each in entries if isinstance(each, int))
    return Count(counts[0].times * number) if counts else number


def _quotient(entries: Sequence[Entry]) -> Entry:
    one, other = entries
    if not isinstance(other, int) or not other or one is None:
        return None
    if isinstance(one, int):
        return one // other
    return None if one.times % other else Count(one.times // other)


def _difference(entries: Sequence[Entry]) -> Entry:
    one, other = entries
    return one - other if isinstance(one, int) and isinstance(other, int) else None


def _sum(entries: Sequence[Entry]) -> Entry:
    one, other = entries
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    alike = isinstance(one, Count) and isinstance(other, Count)
    return Count(one.times + other.times) if alike else None  # type: ignore[union-attr]


def _by_elements(does: Callable[[Sequence[Entry]], Entry]) -> Callable[..., list[Entry] | None]:
    def combined(entries: Any, inputs: Any, _: Any) -> list[Entry] | None:
        one, other = entries
        if any(each.shape.rank not in (0, 1) for each in inputs):
            return None
        length = max(len(one), len(other))
        if not {len(one), len(other)} <= {1, length}:
            return None
        return [does(pair) for pair in zip(one * (length // len(one)), other * (length // len(other)), strict=True)]

    return combined


def _first(entries: Any, *_: Any) -> list[Entry]:
    return list(entries[0])


def _joined(entries: Any, inputs: Any, attrs: Any) -> list[Entry] | None:
    flat = all(each.shape.rank in (0, 1) for each in inputs) and not attrs.get("axis")
    return [each for one in entries for each in one] if flat else None


def _sliced(entries: Any, inputs: Any, attrs: Any) -> list[Entry] | None:
    held, begin, end, stride = entries
    if inputs[0].shape.rank != 1 or len(begin) != 1 or attrs["new_axis_mask"] or attrs["ellipsis_mask"]:
        return None
    if not all(map(are_fixed, (begin, end, stride))):
        return None
    if attrs["shrink_axis_mask"]:
        return [held[begin[0]]]
    start, stop = (None if attrs[name] else at[0] for name, at in (("begin_mask", begin), ("end_mask", end)))
    return list(held[slice(start, stop, stride[0])])


def _gathered(entries: Any, inputs: Any, _: Any) -> list[Entry] | None:
    held, indices = entries[:2]
    return [held[each] for each in indices] if inputs[0].shape.rank == 1 and are_fixed(indices) else None


def _counted_up(entries: Any, *_: Any) -> list[Entry] | None:
    numbers = [each for (each,) in entries if isinstance(each, int)]
    counted = range(*numbers) if len(numbers) == len(entries) and numbers[2] else None
    return list(counted) if counted is not None and len(counted) <= _AXES else None


def _reduced(entries: Any, inputs: Any, _: Any) -> list[Entry] | None:
    return [_product(entries[0])] if inputs[0].shape.rank in (0, 1) else None


_OPERATIONS: dict[str, Callable[..., list[Entry] | None]] = {
    "AddV2": _by_elements(_sum),
    "Cast": _first,
    "ConcatV2": lambda entries, inputs, attrs: _joined(entries[:-1], inputs[:-1], attrs),
    "ExpandDims": _first,
    "FloorDiv": _by_elements(_quotient),
    "GatherV2": _gathered,
    "Identity": _first,
    "Mul": _by_elements(_product),
    "Pack": _joined,
    "Prod": _reduced,
    "Range": _counted_up,
    "Reshape": _first,
    "Squeeze": _first,
    "StridedSlice": _sliced,
    "Sub": _by_elements(_difference),
}
