"""The numbers among the settings of models and optimizers: alike on all workers, unless one has made them of its own.

A rate, or a penalty, that follows from a worker's own loss differs by rank. What is broadcast would hide that: all go
on with rank 0's, which has not seen the others' examples.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..foundation import call_site
from ..framework import Variable

_OWN = ("seed", "name")  # of each rank: what draws by a stream of its own; Keras counts names by process
RATE = "learning_rate"  # as Keras' optimizers call their variable, and the setting
_BEGUN = "_tfdp_begun"  # of a variable: the value that this rank itself has made it with
_ALIKE = (
    "What one worker alone has seen, such as its own losses, has gone into it: compute it from what is the same on all "
    "ranks, such as dp.average_value(loss)"
)
_CLASSES = ("Model", "Optimizer", "LearningRateSchedule")


def settings_of(objects: Any) -> list[tuple[str, tuple[float, ...]]]:
    """By class what the configurations of Keras' models and optimizers in arguments, lists and dictionaries have in
    numbers; nothing of one that gives none. Of a rate that is a variable: what this rank has begun it with."""
    return [(type(each).__name__, (*_numbers(_configuration(each)), *_begun(each))) for each in _described(objects)]


def differing(mine: list[Any], roots: list[Any], rank: int) -> str:
    """The error of this rank where the numbers are not rank 0's on each, and of which class its own are not."""
    which = next((cls for (cls, own), root in zip(mine, roots, strict=False) if (cls, own) != root), "")
    whose = f"those of its {which} are" if which else "those of another rank are"
    return (
        f"on rank {rank}, numbers among the settings of what is broadcast at {call_site()}: {whose} not rank 0's. "
        f"{_ALIKE}"
    )


def note_begun(variable: Variable, rate: float) -> None:
    """The variable of a rate, which takes rank 0's value, was to begin with this one."""
    setattr(variable, _BEGUN, rate)


def _begun(thing: Any) -> Iterator[float]:
    rate = getattr(thing, RATE, None)
    yield from (getattr(each, _BEGUN) for each in (rate, getattr(rate, "value", None)) if hasattr(each, _BEGUN))


def _described(thing: Any) -> Iterator[Any]:
    if isinstance(thing, (list, tuple)):
        for each in thing:
            yield from _described(each)
    elif isinstance(thing, dict):
        yield from _described(list(thing.values()))
    elif any(cls.__name__ in _CLASSES and "keras" in cls.__module__ for cls in type(thing).__mro__):
        yield thing


def _configuration(thing: Any) -> Any:
    try:
        return thing.get_config()
    except Exception:  # of a class of the script's own it may be anything
        return None


def _numbers(configuration: Any) -> Iterator[float]:
    if isinstance(configuration, dict):
        for name, value in configuration.items():
            is_own = isinstance(name, str) and name.endswith(_OWN)
            if not is_own and (name != RATE or isinstance(value, dict)):
                yield from _numbers(value)
    elif isinstance(configuration, (list, tuple)):
        for each in configuration:
            yield from _numbers(each)
    elif isinstance(configuration, (bool, int, float, np.number, np.bool_)):
        yield float(configuration)
