"""Calls of Keras layers by code of the script's own, and of layers that are such code."""

from __future__ import annotations

import functools
from typing import Any

from ...keras import is_keras
from ..own_code import TRAINING, chosen_by_script
from ..reach import is_of_users
from . import vocabulary
from .reads import in_class, is_own, static
from .values import ANY, DATA_ALONE, Arguments, Known, RefusedError, Value

# What Keras calls of a layer besides its call, and code of the script's own may stand in.
_SEEN = ("call", "compute_mask")
# What it calls before a layer is built, or for who saves or trains it, and not when it is called.
_BESIDE = frozenset(
    {"build", "compute_output_shape", "compute_output_spec", "count_params", "set_weights", "get_weights"}
)


def is_layer(thing: Any) -> bool:
    """Whether it is a layer or model of Keras'."""
    return hasattr(type(thing), "_flatten_layers")


def called(evaluator: Any, layer: Any, arguments: Arguments) -> Value:
    """What a layer gives."""
    call = vocabulary.innermost(in_class(type(layer), "__call__", evaluator.reads))
    if is_own(call):
        found: Value = evaluator.call(call, _bound(layer, arguments))
        return found
    return within(evaluator, layer, arguments)


def within(evaluator: Any, layer: Any, arguments: Arguments) -> Value:
    """The same by its `call`."""
    if not is_keras(type(layer)):
        _require_stock(evaluator, layer)
    kind, call = static(layer, "call", evaluator.reads)
    call = getattr(call, "__func__", call)
    inner = vocabulary.innermost(getattr(call, "python_function", call))
    if is_own(inner):
        bound = _bound(layer, arguments) if kind == "method" else arguments
        # Keras fills in masks and whether it is for training, where the call takes them.
        named = {name: value for name, value in bound.named.items() if name not in ("mask", "training")}
        given: Value = evaluator.call(inner, bound._replace(named=named, more=DATA_ALONE | (bound.more or frozenset())))
        return given
    if id(layer) not in evaluator.layers:
        evaluator.layers[id(layer)] = layer
        _stock(evaluator, layer)
    return DATA_ALONE


def _bound(layer: Any, arguments: Arguments) -> Arguments:
    return arguments._replace(positional=(frozenset({Known(layer)}), *arguments.positional))


def _require_stock(evaluator: Any, layer: Any) -> None:
    """Nothing that Keras calls is the script's, but what is seen."""
    cls = type(layer)
    if is_of_users(type(cls)):
        raise RefusedError(f"has the class {cls.__name__}, whose own class is the script's")
    stock = next(base for base in cls.__mro__ if is_keras(base))
    for base in cls.__mro__[: cls.__mro__.index(stock)]:
        for name, value in vars(base).items():
            if name.startswith("__") or name in _SEEN or name in _BESIDE or name in TRAINING:
                continue
            if hasattr(stock, name) and (is_own(value) or isinstance(value, property)):
                raise RefusedError(f"has {cls.__name__}.{name}, which Keras may call")
    mask = vocabulary.innermost(in_class(cls, "compute_mask", evaluator.reads))
    if is_own(mask):
        evaluator.call(mask, ANY._replace(positional=(frozenset({Known(layer)}),)))


def _stock(evaluator: Any, layer: Any) -> None:
    """A layer with a call of Keras': those within, and what the script has chosen of functions."""
    for value in chosen_by_script(layer):
        _seen(evaluator, value)
    for base in type(layer).__mro__:
        others = [name for name, each in vars(base).items() if is_keras(base) and is_own(vocabulary.innermost(each))]
        if others:
            raise RefusedError(f"has {base.__name__}.{others[0]}, in whose place the script has put another")
    for each in layer._flatten_layers():
        if each is not layer:
            called(evaluator, each, ANY)


def _seen(evaluator: Any, value: Any) -> None:
    if isinstance(value, list | tuple | set | frozenset | dict):
        for each in value.values() if isinstance(value, dict) else value:
            _seen(evaluator, each)
    elif isinstance(value, functools.partial) or callable(value):
        if not is_layer(value):
            evaluator.anyhow(Known(value))
    elif is_of_users(value):
        raise RefusedError(f"holds a {type(value).__name__}, which may do more than to compute")
