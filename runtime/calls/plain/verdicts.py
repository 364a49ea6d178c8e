"""What is found of code, as long as all that has been read of it stays the same."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from . import layers
from .evaluate import Evaluator
from .reads import Reads
from .values import ARRAY_ALONE, DATA, SCALARS, Arguments, Fixed, Held, Known, RefusedError, Value, joined


class Verdict(NamedTuple):
    """Why code may do more than to compute, or ""; and what that was read from."""

    reason: str
    reads: Reads

    @property
    def holds(self) -> bool:
        """Whether it does still."""
        return self.reads.still_hold()


def verdict(
    entry: Any, beside: Sequence[Any], arguments: Any, options: Any, arrays: frozenset[int] = frozenset()
) -> Verdict:
    """Of a layer or function, `entry(*arguments, **options)`, and of functions that it may come to besides; of these
    alone where the entry is None.

    arrays: the `id` of each tensor that is an array of NumPy's for the code.
    """
    reads = Reads()
    evaluator, value = Evaluator(reads), functools.partial(_value, arrays)

    def judge() -> None:
        given = Arguments(tuple(map(value, arguments)), {name: value(each) for name, each in options.items()})
        for each in beside:
            evaluator.anyhow(Known(each))
        if layers.is_layer(entry):
            layers.called(evaluator, entry, given)
        elif entry is not None:
            evaluator.outright(entry, given)

    return judged(reads, judge)


def judged(reads: Reads, judge: Callable[[], None]) -> Verdict:
    """What `judge`, which may refuse, finds of what it reads."""
    try:
        judge()
    except RefusedError as refused:
        return Verdict(str(refused), reads)
    except Exception as error:  # whatever nobody has thought of is not known
        return Verdict(str(RefusedError(f"cannot be followed ({type(error).__name__}: {error})")), reads)
    return Verdict("", reads)


def _value(arrays: frozenset[int], given: Any) -> Value:
    """What it is given; a tensor that it could tell apart from others of its kind nowhere."""
    value = functools.partial(_value, arrays)
    if type(given) is tuple:
        return frozenset({Fixed(tuple(map(value, given)))})
    if type(given) is list:
        return frozenset({Held(joined(map(value, given)))})
    if type(given) is dict:
        return frozenset({Held(joined([map(Known, given), *map(value, given.values())]))})
    if id(given) in arrays:
        return ARRAY_ALONE
    is_data = isinstance(given, (tf.Tensor, np.ndarray, np.generic)) or type(given) in SCALARS
    return frozenset({DATA if is_data else Known(given)})
