"""The linear scaling rule: N times the batch, N times the learning rate (Goyal et al. 2017)."""

import math
import numbers
from typing import Any, Literal

from ..foundation import call_site
from ..framework import as_written
from ..job import widened_by
from ..keras import optimizer_of
from . import schedules

# Keras' own schedules are linear in these arguments. Rebuilding one with them scaled keeps its class, so that a saved
# optimizer loads where tfdp is not installed.
_LINEAR_ARGUMENTS = {
    "CosineDecay": ("initial_learning_rate", "warmup_target"),
    "CosineDecayRestarts": ("initial_learning_rate",),
    "ExponentialDecay": ("initial_learning_rate",),
    "InverseTimeDecay": ("initial_learning_rate",),
    "PiecewiseConstantDecay": ("values",),
    "PolynomialDecay": ("initial_learning_rate", "end_learning_rate"),
}

Scale = Literal["linear", "sqrt", "none"]


@as_written
def scale_lr(learning_rate: Any, scale: Scale = "linear", warmup_steps: int = 0) -> Any:
    """The learning rate times the number of workers.

    Args:
        learning_rate: a Python or NumPy number; a tensor or variable (of a variable, the value it has now); a Keras
            `LearningRateSchedule`, whose values are multiplied and whose steps are not; or a function of no arguments
            that returns the rate, as Keras optimizers take.
        scale: the factor for N workers: N ("linear"), the square root of N ("sqrt") or 1 ("none").
        warmup_steps: over this many steps of the job the factor grows from 1 to its full size (Goyal et al. 2017).

    Returns:
        The same kind of thing, serialisable as before; with `warmup_steps` always a schedule. A schedule class of your
        own comes back wrapped in `schedules.ScaledSchedule`. With one worker: `learning_rate` itself.

    Raises:
        TypeError: it is none of these, or a function with `warmup_steps`.
        ValueError: another `scale`, or negative `warmup_steps`.
    """
    factor = _factor(scale, warmup_steps)
    if isinstance(learning_rate, (bool, str)) or learning_rate is None:
        raise _refusal(learning_rate)
    if factor == 1:
        return learning_rate
    base = schedules.base_of(type(learning_rate))
    if base is not None and not warmup_steps:
        return _scaled_schedule(learning_rate, base, factor)
    number = isinstance(learning_rate, numbers.Number) or hasattr(learning_rate, "dtype")
    if warmup_steps and (number or base is not None):
        return schedules.scaled(base, learning_rate, factor, warmup_steps)
    if number:
        return schedules.times(learning_rate, factor)
    if callable(learning_rate) and not warmup_steps:
        return lambda: scale_lr(learning_rate(), scale)
    raise _refusal(learning_rate)


@as_written
def local_schedule(schedule: Any) -> Any:
    """A schedule of one's own, as a function of this job's steps: one of them covers N steps of the one-process script.

    Args:
        schedule: a Keras `LearningRateSchedule` of any class, whose numbers of steps are the one-process script's.

    Returns:
        `schedules.LocalSchedule`, which calls it with N times the step and gives its value unchanged.
        With one worker: `schedule` itself.

    Raises:
        TypeError: it is no Keras `LearningRateSchedule`.
    """
    base = schedules.base_of(type(schedule))
    if base is None:
        raise TypeError(f"local_schedule at {call_site()} needs a Keras LearningRateSchedule, not {schedule!r}")
    size = widened_by()
    return schedule if size == 1 else schedules.local(base, schedule, size)


@as_written
def scale_optimizer(optimizer: Any, scale: Scale = "linear", warmup_steps: int = 0) -> Any:
    """The Keras optimizer with its learning rate scaled: for one whose rate is not written where it is made.

    Args:
        optimizer: a Keras optimizer that has updated nothing yet, and whose rate is a number; its name, such as
            "adam"; or its configuration, a dict with "class_name" and "config".
        scale, warmup_steps: as in `scale_lr`.

    Returns:
        A new optimizer of the same class and configuration. With one worker: `optimizer` itself, or the one that the
        name or the configuration means.

    Raises:
        TypeError: it has no `get_config` with a learning rate, or its rate is a schedule: scale that where it is made.
    """
    factor = _factor(scale, warmup_steps)
    if isinstance(optimizer, (str, dict)):
        optimizer = optimizer_of(optimizer)
    config: dict[str, Any] = optimizer.get_config() if hasattr(optimizer, "get_config") else {}
    rate: Any = config.get("learning_rate")
    if not isinstance(rate, numbers.Number) and not hasattr(rate, "dtype"):
        raise TypeError(
            f"the optimizer at {call_site()} is {optimizer!r}, whose learning rate is {rate!r}: a number is needed. "
            "Give a schedule to the optimizer where it is made, as learning_rate=dp.scale_lr(schedule)"
        )
    if widened_by() > 1 and config.get("decay"):
        raise TypeError(
            f"the optimizer at {call_site()} has decay={config['decay']!r}, by which its rate falls at each step, and "
            "steps are fewer here: give it a learning-rate schedule instead"
        )
    if factor == 1:
        return optimizer
    return type(optimizer).from_config({**config, "learning_rate": scale_lr(float(rate), scale, warmup_steps)})


def _factor(scale: str, warmup_steps: int) -> float:
    size = widened_by()
    factors = {"linear": size, "sqrt": math.sqrt(size), "none": 1}
    if scale not in factors:
        raise ValueError(f"scale={scale!r} at {call_site()}: it is one of {', '.join(factors)}")
    if warmup_steps < 0:
        raise ValueError(f"warmup_steps={warmup_steps} at {call_site()}: a number of steps is not negative")
    return factors[scale]


def _refusal(learning_rate: object) -> TypeError:
    return TypeError(
        f"the learning rate to scale at {call_site()} is {learning_rate!r}: a number, a tensor, a Keras "
        "LearningRateSchedule or a function of no arguments is needed. Write the rate out where it was left out"
    )


def _scaled_schedule(schedule: Any, base: type, factor: float) -> Any:
    cls = type(schedule)
    linear = _LINEAR_ARGUMENTS.get(cls.__name__) if cls.__module__.split(".")[0] in schedules.KERAS else None
    if linear is None:
        return schedules.scaled(base, schedule, factor, 0)
    config = schedule.get_config()
    for argument in linear:
        value = config.get(argument)
        if isinstance(value, (list, tuple)):
            config[argument] = [schedules.times(each, factor) for each in value]
        elif value is not None:
            config[argument] = schedules.times(value, factor)
    return cls.from_config(config)
