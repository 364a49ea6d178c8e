"""Whether a layer is Keras' own through and through.

Such a layer gives each row a result that follows from this row and the layer's configuration, or it mixes rows whatever
the numbers are, which a look shows. Code of the script's own may do otherwise by the numbers, the length or the step:
it is always given the whole batch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from ..keras import is_keras
from .reach import closed_over

_STATES = 4  # how deep containers are searched
# Attributes of a model that a call of it does not use.
_TRAINING = frozenset(
    {
        "build",
        "compile",
        "compute_loss",
        "compute_metrics",
        "evaluate",
        "fit",
        "from_config",
        "get_config",
        "get_build_config",
        "build_from_config",
        "load_weights",
        "losses",
        "make_predict_function",
        "make_test_function",
        "make_train_function",
        "metrics",
        "metrics_names",
        "predict",
        "predict_step",
        "reset_metrics",
        "save",
        "save_weights",
        "summary",
        "test_on_batch",
        "test_step",
        "train_on_batch",
        "train_step",
    }
)
_HOOKS = ("__call__", "__getattr__", "__getattribute__", "__new__", "__setattr__")
_OUTSIDE_CALLS = ("constraint", "initializer", "regularizer")
# Keras 2 puts operations between layers into layers of these classes.
_OPERATIONS = ("ClassMethod", "InstanceMethod", "InstanceProperty", "SlicingOpLambda", "TFOpLambda")
# Those that compute element by element, whatever the numbers are; by their names in Keras 3, and in Keras 2.
_ARITHMETIC = frozenset(
    """
    Absolute Add Cast Divide Equal Exp ExpandDims Greater GreaterEqual Less LessEqual LogicalAnd LogicalNot LogicalOr
    Maximum Minimum Multiply Negative NotEqual Relu Sigmoid Sqrt Square Subtract Tanh TrueDivide
    """.split()  # noqa: SIM905 - a list of words
)
_SYMBOLS = tuple(f"{place}.{name}" for place in ("__operators__", "math") for name in ("add", "multiply", "subtract"))
_PLAIN = ("_collections", "builtins", "collections", "numpy", "weakref", "threading", "_thread", "inspect", "types")

# What a reason begins with.
OTHER = "holds code that is not Keras' own"


def other_code(layer: Any) -> str:
    """Why a layer is not Keras' own through and through; "" where it is."""
    for each in layer._flatten_layers():
        found = _of_class(type(each)) or _of_operations(each) or _of_values(each)
        if found:
            inside = "" if each is layer else f" in {each.name!r}"
            return f"{OTHER} ({found}{inside})"
    return ""


def configuration(layer: Any) -> Any:
    """What a look at a layer holds for: its layers, and their public attributes that are numbers, texts or flags."""
    return tuple((id(each), type(each).__name__, *_plain(each)) for each in layer._flatten_layers())


def _plain(layer: Any) -> Iterator[Any]:
    if hasattr(layer, "fit"):
        return
    for name, value in vars(layer).items():
        if not name.startswith("_") and isinstance(value, bool | int | float | str | tuple):
            yield name, repr(value) if isinstance(value, tuple) else value


def _of_class(cls: Any) -> str:
    stock = next(base for base in cls.__mro__ if is_keras(base))
    for base in cls.__mro__[: cls.__mro__.index(stock)]:
        for name in vars(base):
            dunder = name.startswith("__") and name.endswith("__") and name not in _HOOKS
            if not dunder and name not in _TRAINING and hasattr(stock, name):
                return f"{name} of {cls.__name__}"
    return "" if is_keras(cls.call) else f"call of {cls.__name__}"


def _of_operations(layer: Any) -> str:
    """Operations between layers are layers in Keras 2, and beside them in Keras 3."""
    if type(layer).__name__ in _OPERATIONS and getattr(layer, "symbol", "") not in _SYMBOLS:
        return f"the operation {layer.name!r}"
    for each in getattr(layer, "_operations", None) or ():
        if not hasattr(each, "_flatten_layers") and type(each).__name__ not in _ARITHMETIC:
            return f"the operation {each.name!r}"
    return ""


def _of_values(layer: Any) -> str:
    held: dict[str, Any] = dict(vars(layer))
    for name, value in held.items():
        if hasattr(layer, "fit"):
            if name in ("call", "__call__", "compute_mask") and _is_other(value, 0):
                return name
        elif not any(each in name for each in _OUTSIDE_CALLS) and _is_other(value, 0):
            return name
    return ""


def _is_other(value: Any, depth: int) -> bool:
    """Whether a value is, or holds, a function or an object of the script's or of another library's."""
    if isinstance(value, functools.partial):
        return _is_other(value.func, depth) or any(_is_other(each, depth) for each in value.args)
    if isinstance(value, Mapping):
        return depth < _STATES and any(_is_other(each, depth + 1) for each in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return depth < _STATES and any(_is_other(each, depth + 1) for each in value)
    inner = getattr(value, "python_function", None) or getattr(value, "__func__", None) or value
    if isinstance(inner, type):
        return not is_keras(inner)
    if hasattr(inner, "__code__"):
        return not is_keras(inner) or _is_other(closed_over(inner), depth)
    if not is_keras(type(inner)):
        return type(inner).__module__.split(".")[0] not in _PLAIN
    # What TensorFlow makes of a function, such as one with a gradient of its own.
    return (
        callable(inner) and not hasattr(inner, "_flatten_layers") and _is_other(getattr(inner, "__dict__", {}), depth)
    )
