"""Learning-rate schedules made of others. Keras 2, Keras 3 and tf_keras each have a base class that they must have."""

import functools
import importlib
from typing import Any

KERAS = ("keras", "tf_keras")


def base_of(cls: type) -> type | None:
    """The `LearningRateSchedule` that `cls` derives from; None where it is no schedule."""
    for base in cls.__mro__:
        if base.__name__ == "LearningRateSchedule" and base.__module__.split(".")[0] in KERAS:
            return base
    return None


def scaled(base: type | None, schedule: Any, factor: float, warmup_steps: int) -> Any:
    """A schedule whose values are those of `schedule`, or the number that it is, times `factor`."""
    return _classes(base or _present_base())[0](schedule, factor, warmup_steps)


def local(base: type, schedule: Any, size: int) -> Any:
    """The schedule that at step k gives what `schedule` gives at step `size * k`."""
    return _classes(base)[1](schedule, size)


def times(value: Any, factor: float) -> Any:
    """`value * factor` in the value's own dtype."""
    import numpy as np

    if not hasattr(value, "dtype"):
        return value * factor
    if isinstance(value, (np.generic, np.ndarray)):
        same: Any = value.dtype.type(factor) if value.dtype.kind in "fc" else factor
        return value * same
    import tensorflow as tf

    tensor = tf.convert_to_tensor(value)
    return tensor * tf.cast(factor, tensor.dtype)


def _present_base() -> type:
    import tensorflow as tf

    base: type = tf.keras.optimizers.schedules.LearningRateSchedule
    return base


@functools.cache
def _classes(base: type) -> tuple[Any, Any]:
    # Made on demand: importing Keras takes a second, and most scripts scale a number.
    keras = importlib.import_module(base.__module__.split(".")[0])
    around = _around(base, keras.optimizers.schedules)
    found = []
    for made in (_scaled(around), _local(around)):
        made.__module__, made.__qualname__ = __name__, made.__name__
        found.append(keras.saving.register_keras_serializable(package="tfdp")(made))
    return found[0], found[1]


def _around(base: type, schedules: Any) -> Any:
    class Around(base):  # type: ignore[misc]
        """What both have in common: the schedule inside, whose other attributes are theirs too."""

        def __init__(self, schedule: Any, name: str | None = None) -> None:
            super().__init__()
            self.schedule = schedules.deserialize(schedule) if isinstance(schedule, dict) else schedule
            self.name = name

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") or "schedule" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(self.schedule, name)

        def _inside(self) -> Any:
            return schedules.serialize(self.schedule) if callable(self.schedule) else self.schedule

    return Around


def _scaled(around: Any) -> type:
    class ScaledSchedule(around):  # type: ignore[misc]
        """A schedule whose values are another's, or a number, times `factor`. Steps are passed on as they are.

        With `warmup_steps` the factor grows from 1 to `factor` over that many steps.
        """

        def __init__(self, schedule: Any, factor: float, warmup_steps: int = 0, name: str | None = None) -> None:
            super().__init__(schedule, name)
            self.factor = factor
            self.warmup_steps = warmup_steps

        def __call__(self, step: Any) -> Any:
            import tensorflow as tf

            value = self.schedule(step) if callable(self.schedule) else self.schedule
            if not self.warmup_steps:
                return times(value, self.factor)
            done = tf.minimum(tf.cast(step, tf.float32) / self.warmup_steps, 1.0)
            tensor = tf.convert_to_tensor(value)
            return tensor * tf.cast(1.0 + done * (self.factor - 1.0), tensor.dtype)

        def get_config(self) -> dict[str, Any]:
            parts = {"schedule": self._inside(), "factor": self.factor, "warmup_steps": self.warmup_steps}
            return {**parts, "name": self.name}

    return ScaledSchedule


def _local(around: Any) -> type:
    class LocalSchedule(around):  # type: ignore[misc]
        """A schedule that sees `size` times the step: one step of `size` workers covers as many of its own."""

        def __init__(self, schedule: Any, size: int, name: str | None = None) -> None:
            super().__init__(schedule, name)
            self.size = size

        def __call__(self, step: Any) -> Any:
            return self.schedule(step * self.size)

        def get_config(self) -> dict[str, Any]:
            return {"schedule": self._inside(), "size": self.size, "name": self.name}

    return LocalSchedule


def __getattr__(name: str) -> Any:
    if name not in {"ScaledSchedule", "LocalSchedule"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _classes(_present_base())[name == "LocalSchedule"]
