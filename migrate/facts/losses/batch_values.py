"""How values depend on the batch, and what operations make of that. Pure: nothing here looks at a script."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum


class Reduction(Enum):
    """How a value depends on the batch."""

    MEAN = "a mean over the batch"
    SUM = "a sum over the batch"
    PER_EXAMPLE = "one value per example"
    CONSTANT = "no function of the batch"
    MIXED = "made of examples into each of which others of the batch have gone, by their mean, norm or the like"
    UNKNOWN = "not understood"
    NOTHING = "only itself, in a loop"


@dataclass(frozen=True)
class Value:
    """A value's dependence on the batch; per example means that the first axis is the batch's.

    A constant or a value per example may have the batch's size as a factor: `power` says how often. Of what is not
    understood may be known that it is one number of all examples (`of_all`), or `mixed`: that into each example have
    gone others. A constant may be a number of the global batch, the same on all ranks (`whole`), and then grow as that
    batch does to the power of `growth`.
    """

    reduction: Reduction
    deep: bool = False  # it certainly has an axis after the batch's: axis=-1 is one of each example
    line: bool = False  # it certainly has none: axis=-1 is the batch's
    opaque: bool = False  # made by something not looked into: it may be a tuple or dict of such values
    power: int = 0
    given: bool = False  # certainly made of numbers and the data alone: no weight has part in it
    guessed: bool = False  # made by code outside the file: taken for one value per example
    averaged: bool = False  # it may be the mean of one value per example already
    of_all: bool = False
    mixed: bool = False
    whole: bool = False
    growth: int = 0

    @property
    def kind(self) -> Reduction:
        """How the value depends on the batch, as far as that is to be said."""
        return Reduction.MIXED if self.mixed else self.reduction


Axes = tuple[int, ...] | None  # () is all of them, None is not understood

CONSTANT, UNKNOWN = Value(Reduction.CONSTANT), Value(Reduction.UNKNOWN)
NOTHING = Value(Reduction.NOTHING, opaque=True)  # adds nothing to what else a value may be
FIXED = frozenset({Reduction.CONSTANT, Reduction.NOTHING})
NUMBERS = {Reduction.MEAN: 0, Reduction.SUM: 1}  # one number for the batch: the mean times a power of its size
WHOLE_MEAN = Value(Reduction.CONSTANT, whole=True)
WHOLE_SUM = Value(Reduction.CONSTANT, whole=True, growth=1)
NUMBER, COUNT = Value(Reduction.CONSTANT, given=True), Value(Reduction.CONSTANT, power=1, given=True)
MEAN, SUM, ROWS = Value(Reduction.MEAN), Value(Reduction.SUM), Value(Reduction.PER_EXAMPLE)
OF_ALL, MIXED = Value(Reduction.UNKNOWN, of_all=True), Value(Reduction.UNKNOWN, mixed=True)
DEEP_ROWS, GIVEN_ROWS = Value(Reduction.PER_EXAMPLE, deep=True), Value(Reduction.PER_EXAMPLE, given=True)


def join(values: Iterable[Value]) -> Value:
    """A value that may be any of these. A constant adds no gradient."""
    known, batch = _split(values)
    if not batch:
        return _constant(known)
    if any(v.mixed for v in batch):
        return MIXED
    counted = any(v.whole for v in known) and batch[0].reduction is not Reduction.MEAN
    if counted or len({(v.reduction, v.power) for v in batch}) > 1:
        return UNKNOWN
    return replace(
        _rows(known, batch[0].power),
        reduction=batch[0].reduction,
        deep=all(v.deep for v in batch),
        line=all(v.line for v in batch),
        opaque=all(v.opaque for v in batch),
        of_all=all(v.of_all for v in batch),
    )


def _split(values: Iterable[Value]) -> tuple[list[Value], list[Value]]:
    """Those that are something, and those of them that depend on the batch."""
    known = [v for v in values if v.reduction is not Reduction.NOTHING]
    return known, [v for v in known if v.reduction is not Reduction.CONSTANT]


def is_number(value: Value) -> bool:
    """Whether a value is a sum or mean over the batch already."""
    return value.whole or value.reduction in NUMBERS


def is_of_all(value: Value) -> bool:
    """Whether a value is one of all examples: their mean, sum, norm or the like."""
    return value.of_all or value.reduction in NUMBERS


def _mixes(values: list[Value]) -> bool:
    """Whether values of examples meet what is one of all of them, or have before."""
    examples = any(v.reduction is Reduction.PER_EXAMPLE for v in values)
    return any(v.mixed for v in values) or (examples and any(map(is_of_all, values)))


def elementwise(values: Iterable[Value]) -> Value:
    """Any function of the elements at one place."""
    known, batch = _split(values)
    if _mixes(known):
        return MIXED
    if any(v.power or v.averaged for v in known) or (batch and any(v.growth for v in known)):
        return UNKNOWN
    if not batch:
        return _constant(known)
    if all(v.of_all for v in batch):
        return OF_ALL
    return _rows(known) if {v.reduction for v in batch} == {Reduction.PER_EXAMPLE} else UNKNOWN


def added(values: Iterable[Value]) -> Value:
    """A sum or difference of the values. Terms of the weights fit a mean: there is one of them on every rank."""
    known, batch = _split(values)
    rest = [v for v in known if v not in batch]
    if not batch:
        return _constant(known)
    apart = {v.power for v in batch} if all(v.reduction is Reduction.PER_EXAMPLE for v in batch) else set()
    if _mixes(batch) or len(apart) > 1:
        return MIXED  # of a gradient of the mean, that of each example is the smaller the more there are
    if len({v.reduction for v in batch}) > 1 or any(v.growth for v in rest):
        return UNKNOWN
    first = batch[0]
    power = NUMBERS.get(first.reduction, first.power)
    # Numbers have no gradient, whatever they are; weights have to be as many times in it as the examples are.
    if any(v.power != first.power for v in batch) or any(v.power != power and not v.given for v in rest):
        return UNKNOWN
    if first.reduction is Reduction.PER_EXAMPLE:
        return _rows(known, power) if all(v.power == power for v in rest) else UNKNOWN
    # With a number added it does not grow as the batch does any more, which its gradient does not show.
    given = not rest and all(v.given for v in batch)
    return replace(first, given=given, guessed=any(v.guessed for v in batch))


def multiplied(left: Value, right: Value) -> Value:
    """A product; only a constant factor keeps a mean a mean."""
    if NOTHING in {left, right}:
        return NOTHING
    if left.reduction is Reduction.CONSTANT:
        return _scaled(right, left, 1)
    return _scaled(left, right, 1) if right.reduction is Reduction.CONSTANT else elementwise((left, right))


def divided(left: Value, right: Value) -> Value:
    """A quotient."""
    if NOTHING in {left, right}:
        return NOTHING
    return _scaled(left, right, -1) if right.reduction is Reduction.CONSTANT else elementwise((left, right))


def _scaled(value: Value, factor: Value, sign: int) -> Value:
    """The value times a constant, or with sign -1 divided by it: its powers of the batch's size go into the value."""
    power, growth = sign * factor.power, sign * factor.growth
    given = value.given and factor.given
    if value.reduction is Reduction.UNKNOWN:
        return value
    if growth and value.reduction is not Reduction.CONSTANT:
        return UNKNOWN
    if value.reduction in NUMBERS:
        return total(value, NUMBERS[value.reduction] + power, given)
    found = replace(value, opaque=False, power=value.power + power, given=given)
    if value.reduction is Reduction.CONSTANT:
        return replace(found, whole=value.whole or factor.whole, growth=value.growth + growth)
    return found


def total(of: Value, power: int, given: bool) -> Value:
    """A number that is the examples' mean times that power of the batch's size."""
    kind = {0: Reduction.MEAN, 1: Reduction.SUM}.get(power, Reduction.UNKNOWN)
    # What may not be one value per example may have been reduced already: then no sum over the examples is one.
    kind = Reduction.UNKNOWN if (of.guessed or of.averaged) and kind is Reduction.SUM else kind
    return Value(kind, given=given, guessed=of.guessed)


def _constant(values: list[Value]) -> Value:
    powers = {v.power for v in values}
    if len(powers) != 1:
        return UNKNOWN if powers else NOTHING
    given, growth = all(v.given for v in values), max(v.growth for v in values)
    return Value(Reduction.CONSTANT, power=powers.pop(), given=given, whole=any(v.whole for v in values), growth=growth)


def as_loss(value: Value) -> Value:
    """A loss that is a number of the global batch is averaged as a mean over the batch is.

    One that grows with the batch would be neither a mean nor, to be averaged, a sum.
    """
    if value.whole:
        return UNKNOWN if value.power or value.growth else MEAN
    return UNKNOWN if value == NOTHING else value


def _rows(values: list[Value], power: int = 0) -> Value:
    return Value(
        Reduction.PER_EXAMPLE,
        any(v.deep for v in values),
        all(v.line for v in values if v.reduction is Reduction.PER_EXAMPLE),
        power=power,
        given=all(v.given for v in values),
        guessed=any(v.guessed for v in values),
        averaged=any(v.averaged for v in values),
    )


def flat(value: Value) -> bool:
    """Whether the value may be one number for each example."""
    return value.reduction is Reduction.PER_EXAMPLE and not value.deep and not value.opaque


def matrix_product(left: Value, right: Value, turned: bool = False) -> Value:
    """`left @ right`; two batches would pair every example with every other."""
    if NOTHING in {left, right}:
        return NOTHING
    if right.reduction is not Reduction.CONSTANT or left.power or right.power:
        return UNKNOWN
    if left.reduction is Reduction.PER_EXAMPLE:
        return UNKNOWN if turned else replace(_rows([left, right]), deep=True, line=False)
    return _constant([left, right]) if left.reduction is Reduction.CONSTANT else UNKNOWN


def of_each_example(value: Value, axes: Axes) -> bool:
    """Whether all of the axes are certainly not the batch's."""
    return bool(axes) and all(a > 0 or (a == -1 and value.deep) for a in axes or ())


def _over_batch(value: Value, axes: Axes) -> bool:
    """Whether the batch's axis is certainly one of the axes."""
    return axes is not None and (not axes or 0 in axes or (value.line and axes == (-1,)))


def reduced(value: Value, axes: Axes, over: Value) -> Value:
    """`tf.reduce_mean` (over: MEAN) or `tf.reduce_sum` (over: SUM) along axes. Both are linear."""
    if value.reduction in FIXED:
        return value
    if axes is None:
        return UNKNOWN
    if value.reduction is Reduction.PER_EXAMPLE and _over_batch(value, axes):
        return total(value, value.power + NUMBERS[over.reduction], value.given)
    kept = value.reduction is not Reduction.PER_EXAMPLE or of_each_example(value, axes)
    return replace(value, deep=False, opaque=False) if kept else UNKNOWN


def statistic(value: Value, axes: Axes, kept: bool = False) -> Value:
    """A function, not linear, of all values along axes; `kept` says that it leaves the axes there."""
    if value.reduction in FIXED and not value.power:
        return value
    if value.mixed or value.reduction is not Reduction.PER_EXAMPLE:
        return MIXED if value.mixed else UNKNOWN
    if _over_batch(value, axes):
        return MIXED if kept else OF_ALL
    if value.power or not of_each_example(value, axes):
        return UNKNOWN
    return replace(value, deep=kept, opaque=False)
