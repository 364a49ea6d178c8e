"""How values depend on the batch, and what operations make of that. Pure: nothing here looks at a script."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Reduction(Enum):
    """How a value depends on the batch."""

    MEAN = "a mean over the batch"
    SUM = "a sum over the batch"
    PER_EXAMPLE = "one value per example"
    CONSTANT = "no function of the batch"
    UNKNOWN = "not understood"


@dataclass(frozen=True)
class Value:
    """A value's dependence on the batch; per example means that the first axis is the batch's."""

    reduction: Reduction
    deep: bool = False  # it certainly has an axis after the batch's: axis=-1 is one of each example
    opaque: bool = False  # made by something not looked into: it may be a tuple or dict of such values


Axes = tuple[int, ...] | None  # () is all of them, None is not understood

CONSTANT, UNKNOWN = Value(Reduction.CONSTANT), Value(Reduction.UNKNOWN)
MEAN, SUM, ROWS = Value(Reduction.MEAN), Value(Reduction.SUM), Value(Reduction.PER_EXAMPLE)
DEEP_ROWS = Value(Reduction.PER_EXAMPLE, deep=True)


def join(values: Iterable[Value | None]) -> Value | None:
    """A value that may be any of these; None stands for "nothing new" in a loop. A constant adds no gradient."""
    known = [v for v in values if v is not None]
    batch = [v for v in known if v.reduction is not Reduction.CONSTANT]
    if not batch:
        return CONSTANT if known else None
    if len({v.reduction for v in batch}) > 1:
        return UNKNOWN
    return Value(batch[0].reduction, all(v.deep for v in batch), all(v.opaque for v in batch))


def elementwise(values: Iterable[Value | None]) -> Value | None:
    """Any function of the elements at one place."""
    known = [v for v in values if v is not None]
    found = {v.reduction for v in known} - {Reduction.CONSTANT}
    if not found:
        return CONSTANT if known else None
    return Value(Reduction.PER_EXAMPLE, any(v.deep for v in known)) if found == {Reduction.PER_EXAMPLE} else UNKNOWN


def added(values: Iterable[Value | None]) -> Value | None:
    """A sum or difference of the values."""
    known = [v for v in values if v is not None]
    found = {v.reduction for v in known} - {Reduction.CONSTANT}
    return Value(found.pop()) if len(found) == 1 and Reduction.PER_EXAMPLE not in found else elementwise(known)


def multiplied(left: Value | None, right: Value | None) -> Value | None:
    """A product; only a constant factor keeps a mean a mean."""
    if left is None or right is None:
        return None
    if left.reduction is Reduction.CONSTANT:
        return right
    return left if right.reduction is Reduction.CONSTANT else elementwise((left, right))


def divided(left: Value | None, right: Value | None) -> Value | None:
    """A quotient."""
    if left is not None and right is not None and right.reduction is Reduction.CONSTANT:
        return left
    return elementwise((left, right)) if left is not None and right is not None else None


def matrix_product(left: Value | None, right: Value | None, turned: bool = False) -> Value | None:
    """`left @ right`; two batches would pair every example with every other."""
    if left is None or right is None:
        return None
    if right.reduction is not Reduction.CONSTANT:
        return UNKNOWN
    if left.reduction is Reduction.PER_EXAMPLE:
        return UNKNOWN if turned else DEEP_ROWS
    return CONSTANT if left.reduction is Reduction.CONSTANT else UNKNOWN


def of_each_example(value: Value, axes: Axes) -> bool:
    """Whether all of the axes are certainly not the batch's."""
    return bool(axes) and all(a > 0 or (a == -1 and value.deep) for a in axes or ())


def reduced(value: Value | None, axes: Axes, total: Value) -> Value | None:
    """`tf.reduce_mean` (total: MEAN) or `tf.reduce_sum` (total: SUM) along axes. Both are linear."""
    if value is None or value.reduction is not Reduction.PER_EXAMPLE:
        if value is None or value.reduction is Reduction.CONSTANT:
            return value
        return UNKNOWN if axes is None else Value(value.reduction)
    if axes is None:
        return UNKNOWN
    if not axes or 0 in axes:
        return total
    return ROWS if of_each_example(value, axes) else UNKNOWN


def statistic(value: Value | None, axes: Axes, kept: bool = False) -> Value | None:
    """A function, not linear, of all values along axes; `kept` says that it leaves the axes there."""
    if value is None or value.reduction is Reduction.CONSTANT:
        return value
    if value.reduction is not Reduction.PER_EXAMPLE or not of_each_example(value, axes):
        return UNKNOWN
    return Value(Reduction.PER_EXAMPLE, deep=kept)
