"""The linear scaling rule: N times the batch, N times the learning rate (Goyal et al. 2017)."""

import functools
import importlib
import numbers
from typing import Any

import numpy as np

from tfdp.runtime.call_site import call_site
from tfdp.runtime.job import current

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
_KERAS = ("keras", "tf_keras")


def scale_lr(learning_rate: Any) -> Any:
    """The learning rate times the number of workers.

    Args:
        learning_rate: a Python or NumPy number; a tensor or variable (of a variable, the value it has now); a Keras
            `LearningRateSchedule`, whose values are multiplied and whose steps are not; or a function of no arguments
            that returns the rate, as Keras optimizers take.

    Returns:
        The same kind of thing, serialisable as before. A schedule class of your own comes back wrapped in
        `tfdp.runtime.learning_rate.ScaledSchedule`. With one worker: `learning_rate` itself.

    Raises:
        TypeError: it is none of these.
    """
    size = current().topology.size
    if isinstance(learning_rate, (bool, str)) or learning_rate is None:
        raise _refusal(learning_rate)
    if size == 1:
        return learning_rate
    base = _schedule_base(type(learning_rate))
    if base is not None:
        return _scaled_schedule(learning_rate, base, size)
    if isinstance(learning_rate, numbers.Number) or hasattr(learning_rate, "dtype"):
        return _times(learning_rate, size)
    if callable(learning_rate):
        return lambda: scale_lr(learning_rate())
    raise _refusal(learning_rate)


def _refusal(learning_rate: object) -> TypeError:
    return TypeError(
        f"the learning rate to scale at {call_site()} is {learning_rate!r}: a number, a tensor, a Keras "
        "LearningRateSchedule or a function of no arguments is needed. Write the rate out where it was left out"
    )


def _times(value: Any, factor: int) -> Any:
    """`value * factor` in the value's own dtype."""
    if not hasattr(value, "dtype"):
        return value * factor
    if isinstance(value, (np.generic, np.ndarray)):
        return value * value.dtype.type(factor)
    import tensorflow as tf

    tensor = tf.convert_to_tensor(value)
    return tensor * tf.cast(factor, tensor.dtype)


def _schedule_base(cls: type) -> type | None:
    """The `LearningRateSchedule` that `cls` derives from: Keras 2, Keras 3 and tf_keras have one each."""
    for base in cls.__mro__:
        if base.__name__ == "LearningRateSchedule" and base.__module__.split(".")[0] in _KERAS:
            return base
    return None


def _scaled_schedule(schedule: Any, base: type, factor: int) -> Any:
    cls = type(schedule)
    linear = _LINEAR_ARGUMENTS.get(cls.__name__) if cls.__module__.split(".")[0] in _KERAS else None
    if linear is None:
        return _wrapper(base)(schedule, factor)
    config = schedule.get_config()
    for argument in linear:
        value = config.get(argument)
        if isinstance(value, (list, tuple)):
            config[argument] = [_times(each, factor) for each in value]
        elif value is not None:
            config[argument] = _times(value, factor)
    return cls.from_config(config)


@functools.cache
def _wrapper(base: type) -> Any:
    keras = importlib.import_module(base.__module__.split(".")[0])
    schedules = keras.optimizers.schedules

    class ScaledSchedule(base):  # type: ignore[misc]
        """A schedule whose values are another's times `factor`. Steps are passed on as they are."""

        def __init__(self, schedule: Any, factor: int, name: str | None = None) -> None:
            super().__init__()
            self.schedule = schedules.deserialize(schedule) if isinstance(schedule, dict) else schedule
            self.factor = factor
            self.name = name

        def __call__(self, step: Any) -> Any:
            return _times(self.schedule(step), self.factor)

        def get_config(self) -> dict[str, Any]:
            return {"schedule": schedules.serialize(self.schedule), "factor": self.factor, "name": self.name}

    ScaledSchedule.__module__, ScaledSchedule.__qualname__ = __name__, "ScaledSchedule"
    return keras.saving.register_keras_serializable(package="tfdp")(ScaledSchedule)


def __getattr__(name: str) -> Any:
    # Made on demand: importing Keras takes a second, and most scripts scale a number.
    if name != "ScaledSchedule":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import tensorflow as tf

    return _wrapper(tf.keras.optimizers.schedules.LearningRateSchedule)
