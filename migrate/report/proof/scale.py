"""Axes: where a value lies between 0 and 1, and which values are labelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_MOST_TICKS = 7


@dataclass(frozen=True)
class Axis:
    """low, high: its ends; powers of ten where it is logarithmic. ticks: the labelled values, within the ends. zero:
    the low end of a logarithmic axis stands for zero.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False
    zero: bool = False

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high one; values beyond are put at the ends."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)
        if self.log:
            value = math.log10(max(value, self.low))
        return min(max((value - low) / (high - low), 0.0), 1.0)


def linear(values: Sequence[float]) -> Axis:
    """An axis for finite values, with round ticks; it reaches a little beyond them."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low == high:
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    step = _round_step((high - low) / _MOST_TICKS)
    first, last = math.floor(low / step), math.ceil(high / step)
    return Axis(first * step, last * step, tuple(round(n * step, 12) for n in range(first, last + 1)))


def counted(count: int) -> Axis:
    """An axis for the numbers from 0 below `count`."""
    last = max(count - 1, 1)
    step = max(1, int(_round_step(last / _MOST_TICKS)))
    return Axis(0, last, tuple(float(n) for n in range(0, last + 1, step)))


def logarithmic(values: Sequence[float]) -> Axis:
    """An axis for positive values; zeros among them lie at its low end, a decade below the smallest other."""
    positive = [value for value in values if value > 0] or [1e-6]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    zero = min(values, default=1.0) <= 0
    high = max(high, low + 1)
    step = math.ceil((high - low) / _MOST_TICKS)
    ticks = [10.0**n for n in range(low, high + 1, step)]
    bottom = 10.0 ** (low - zero)
    return Axis(bottom, 10.0**high, (bottom, *ticks) if zero else tuple(ticks), log=True, zero=zero)


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is no smaller."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
