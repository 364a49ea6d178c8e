"""Whether a layer is Keras' own through and through.

Such a layer gives each row a result that follows from this row and the layer's configuration, or it mixes rows whatever
the numbers are, which a look shows. Code of the script's own may do otherwise by the numbers, the length or the step:
each of its operations is seen.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from ..keras import PACKAGES, is_keras
from . import replaced
from .guard import Code
from .reach import closed_over
from .row_layers import OPERATIONS, is_known

_STATES = 4  # how deep containers are searched
_SETTINGS = 64  # elements of one that may be a layer's configuration
# Attributes of a model that a call of it does not use.
TRAINING = frozenset(
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
        "quantize",
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
_CALLED = ("call", "__call__", "compute_mask")
# Keras 2 holds by the last name what its pooling layers call.
_OUTSIDE_CALLS = ("constraint", "initializer", "regularizer", "pool_function")
# Those that compute element by element, whatever the numbers are; by their names in Keras 3, and in Keras 2.
_ARITHMETIC = frozenset(
    """
    Absolute Add Cast Divide Equal Exp ExpandDims Greater GreaterEqual Less LessEqual LogicalAnd LogicalNot LogicalOr
    Maximum Minimum Multiply Negative NotEqual Relu Sigmoid Sqrt Square Subtract Tanh TrueDivide
    """.split()  # noqa: SIM905 - a list of words
)
_SYMBOLS = tuple(f"{place}.{name}" for place in ("__operators__", "math") for name in ("add", "multiply", "subtract"))
# Where those of Keras' functions stand that its layers call by themselves. Others are what the script has chosen of it:
# what they do by the numbers of some rows no look at others would show.
_OF_LAYERS = frozenset({"activations", "engine", "layers", "models"})
_ELEMENTWISE = "elu gelu leaky_relu relu relu6 selu sigmoid silu softmax softplus softsign swish tanh"
_PLAIN = ("_collections", "builtins", "collections", "numpy", "weakref", "threading", "_thread", "inspect", "types")
_OURS = "tfdp"


def other_code(layer: Any) -> bool:
    """Whether a layer is not Keras' own through and through, or does what a look at it may not show."""
    return any(
        not is_known(each) or replaced.is_in(each) or _of_class(type(each)) or _of_operations(each) or _of_values(each)
        for each in layer._flatten_layers()
    )


def code(layer: Any) -> Code | None:
    """That of the script's own in a layer; None where there is none."""
    if not other_code(layer):
        return None
    return Code(layer, layer, replaced.functions())


def configuration(layer: Any) -> Any:
    """What a look at a layer holds for: its layers, their public attributes that are numbers, texts, flags or
    functions, and which attributes hold tensors.

    Not its inputs, which compute nothing, and which a Sequential of Keras 2 replaces by the batch that it meets.
    """
    layers = (each for each in layer._flatten_layers() if type(each).__name__ != "InputLayer")
    return tuple((id(each), type(each).__name__, *_plain(each), *tensors_of(each)) for each in layers)


def numbers_of(configuration: Any) -> list[Any]:
    """What of it must be equal on all workers: numbers and flags, by the class of each layer."""
    plain = (int, float)  # a flag is one
    return [
        (cls, [each for each in said if isinstance(each, tuple) and isinstance(each[1], plain)])
        for _, cls, *said in configuration
    ]


def tensors_of(thing: Any) -> tuple[str, ...]:
    """The attributes of an object that hold tensors, and no variables: in their place, perhaps, as weights made of
    them."""
    return tuple(name for name, value in getattr(thing, "__dict__", {}).items() if isinstance(value, tf.Tensor))


def _plain(layer: Any) -> Iterator[Any]:
    if hasattr(layer, "fit"):
        return
    for name, value in vars(layer).items():
        if not name.startswith("_") and (isinstance(value, tuple) or _is_plain(value, 0)):
            yield name, repr(value) if isinstance(value, tuple | list | dict) else value
        elif not name.startswith("_") and (hasattr(value, "__code__") or isinstance(value, functools.partial)):
            yield name, value


def _is_plain(value: Any, depth: int) -> bool:
    if isinstance(value, list | tuple | dict):
        held = value.values() if isinstance(value, dict) else value
        return depth < _STATES and len(value) <= _SETTINGS and all(_is_plain(each, depth + 1) for each in held)
    return isinstance(value, bool | int | float | str)


def _of_class(cls: Any) -> bool:
    stock = next(base for base in cls.__mro__ if is_keras(base))
    for base in cls.__mro__[: cls.__mro__.index(stock)]:
        for name in vars(base):
            dunder = name.startswith("__") and name.endswith("__") and name not in _HOOKS
            if not dunder and name not in TRAINING and hasattr(stock, name):
                return True
    return not is_keras(cls.call)


def _of_operations(layer: Any) -> bool:
    """Operations between layers are layers in Keras 2, and beside them in Keras 3."""
    if type(layer).__name__ in OPERATIONS and not (getattr(layer, "symbol", "") in _SYMBOLS and _keeps_rows(layer)):
        return True
    operations = [each for each in getattr(layer, "_operations", None) or () if not hasattr(each, "_flatten_layers")]
    return any(type(each).__name__ not in _ARITHMETIC or not _keeps_rows(each) for each in operations)


def _keeps_rows(operation: Any) -> bool:
    """Whether axis 0 of all that an operation between layers takes and gives is the batch, so that row meets row.

    Numbers that are broadcast along it, as `(1, B)` against `(B, 1)` are, or `(B,)` against `(B, 1)`, do not.
    """
    for node in operation._inbound_nodes:
        taken = list(node.keras_inputs if hasattr(node, "keras_inputs") else node.input_tensors)  # Keras 2, and 3
        shapes = [tuple(each.shape) for each in taken + tf.nest.flatten(node.outputs)]
        if any(not shape or shape[0] is not None for shape in shapes):
            return False
        if type(operation).__name__ != "ExpandDims" and len({len(shape) for shape in shapes}) > 1:
            return False
    return True


def _of_values(layer: Any) -> bool:
    return any(True for _ in chosen_by_script(layer))


def chosen_by_script(layer: Any) -> Iterator[Any]:
    """What a layer of Keras' calls, as far as the script has chosen it."""
    for name, value in dict(vars(layer)).items():
        is_called = name in _CALLED if hasattr(layer, "fit") else not any(each in name for each in _OUTSIDE_CALLS)
        is_called = is_called and name not in TRAINING  # such as `build`, which Keras wraps
        if is_called and _is_other(value, 0):
            yield value


def _is_other(value: Any, depth: int, of_layers: Callable[[Any], bool] | None = None) -> bool:
    """Whether a value is, or holds, a function or an object of the script's or of another library's.

    of_layers: whether a function is one of those that Keras' layers call by themselves.
    """
    of_layers = of_layers or _is_of_layers
    if isinstance(value, functools.partial):  # of an axis, perhaps
        return True
    if isinstance(value, Mapping):
        return depth < _STATES and any(_is_other(each, depth + 1, of_layers) for each in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return depth < _STATES and any(_is_other(each, depth + 1, of_layers) for each in value)
    inner = getattr(value, "python_function", None) or getattr(value, "__func__", None) or value
    if isinstance(inner, type):
        return not is_keras(inner)
    if id(inner) in _elementwise():
        return False
    if hasattr(inner, "__code__"):
        return not of_layers(inner) or _is_other(closed_over(inner), depth, is_keras)
    if not is_keras(type(inner)):
        return type(inner).__module__.split(".")[0] not in (*_PLAIN, _OURS)
    if not callable(inner) or hasattr(inner, "_flatten_layers"):
        return False
    if _is_chosen(type(inner)):
        return True
    # What TensorFlow makes of a function, such as one with a gradient of its own.
    return _is_other(getattr(inner, "__dict__", {}), depth, is_keras)


def _is_chosen(cls: type) -> bool:
    """Whether a class of Keras' is one whose objects compute, and which its layers do not hold by themselves."""
    package, *places = cls.__module__.split(".")
    return package in PACKAGES and not {"losses", "metrics", "ops"}.isdisjoint(places)


def _is_of_layers(function: Any) -> bool:
    package, *places = str(function.__module__).split(".")
    return package in PACKAGES and is_keras(function) and not _OF_LAYERS.isdisjoint(places)


@functools.cache
def _elementwise() -> dict[int, Any]:
    """TensorFlow's own activations, by what tells them apart; not what the script has put in their place."""
    found = [getattr(tf.nn, name) for name in _ELEMENTWISE.split()]
    return {id(each): each for each in found if is_keras(each)}
