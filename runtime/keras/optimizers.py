"""Keras optimizers of every version: which one a name or a configuration means, and the road its updates take."""

import importlib
import sys
from typing import Any, Literal

import numpy as np

from ..foundation import call_site

# The packages that can be a process's Keras; TensorFlow 2.15's own is called keras too.
PACKAGES = ("keras", "tf_keras")

# The method that every update of an optimizer goes through: Keras 3's takes gradients and variables, the others' takes
# pairs of them.
Road = Literal["apply", "apply_gradients"]


def optimizer_of(given: Any) -> Any:
    """The Keras optimizer that `compile(optimizer=given)` would use.

    Args:
        given: an optimizer, which is returned itself; its name, such as "adam"; or its configuration, a dict with
            "class_name" and "config".

    Raises:
        TypeError: anything else.
        ValueError: Keras knows no optimizer of that name.
    """
    if isinstance(given, (str, dict)):
        return _keras().optimizers.get(given)
    if road_of(given) is None:
        raise TypeError(
            f"the optimizer at {call_site()} is {given!r}: a Keras optimizer, its name or its configuration is needed. "
            "One of tf.compat.v1.train is for graphs with sessions"
        )
    return given


def road_of(optimizer: Any) -> Road | None:
    """The method that all its updates go through; None for what is no Keras optimizer."""
    cls = type(optimizer)
    if not callable(getattr(cls, "apply_gradients", None)) or not callable(getattr(cls, "get_config", None)):
        return None
    # The retired optimizers of Keras 2 have no `build`; and none of Keras 2 can be used without state.
    return "apply" if callable(getattr(cls, "stateless_apply", None)) else "apply_gradients"


def inner_of(optimizer: Any) -> Any:
    """The optimizer inside a LossScaleOptimizer of any Keras; None for another one."""
    return getattr(optimizer, "inner_optimizer", None) if "LossScale" in _names(optimizer) else None


def _names(optimizer: Any) -> str:
    return " ".join(cls.__name__ for cls in type(optimizer).__mro__)


def variables_of(optimizer: Any) -> list[Any]:
    """The optimizer's variables that exist now."""
    found = getattr(optimizer, "variables", ())
    return list(found() if callable(found) else found)


def _keras() -> Any:
    """The Keras of the script: tf-keras where only that one is in use, else TensorFlow's."""
    loaded = [name for name in PACKAGES if name in sys.modules]
    if loaded == ["tf_keras"]:
        return sys.modules["tf_keras"]
    # Looked up so because the attribute tf.keras does not say that there is no Keras.
    return importlib.import_module("tensorflow").keras


def rate_of(model: Any) -> float:
    """The compiled optimizer's learning rate; NaN where it has none that is a number now."""
    try:
        return float(np.asarray(model.optimizer.learning_rate))
    except (AttributeError, TypeError, ValueError):
        return float("nan")
