"""Calls of Keras layers by code of the script's own, and of layers that are such code."""

from __future__ import annotations

import functools
import types
from typing import Any

import tensorflow as tf

from ...keras import is_keras
from ..own_code import TRAINING, chosen_by_script
from . import vocabulary
from .reads import in_class, innermost, is_own, is_scripts, static
from .values import ANY, DATA_ALONE, Arguments, Known, RefusedError, Value

# What Keras calls of a layer besides its call, and code of the script's own may stand in.
_SEEN = ("call", "compute_mask")
_ASKED = ("__delattr__", "__getattr__", "__getattribute__", "__setattr__")
# What it calls before a layer is built, or for who saves or trains it, and not when it is called.
_BESIDE = frozenset(
    {"build", "compute_output_shape", "compute_output_spec", "count_params", "set_weights", "get_weights"}
)


def is_layer(thing: Any) -> bool:
    """Whether it is a layer or model of Keras'."""
    return hasattr(type(thing), "_flatten_layers")


def is_class(thing: Any) -> bool:
    """Whether it is a class of Keras' own layers."""
    return isinstance(thing, type) and hasattr(thing, "_flatten_layers") and is_keras(thing)


def called(evaluator: Any, layer: Any, arguments: Arguments) -> Value:
    """What a layer gives."""
    call = in_class(type(layer), "__call__", evaluator.reads)
    if not isinstance(call, types.FunctionType):
        raise RefusedError(f"calls a {type(layer).__name__}, by no function")
    if is_own(inner := innermost(call)):
        found: Value = evaluator.call(inner, _bound(layer, arguments))
        return found
    return within(evaluator, layer, arguments)


def within(evaluator: Any, layer: Any, arguments: Arguments) -> Value:
    """The same by its `call`."""
    if not is_keras(type(layer)):
        _require_stock(evaluator, layer)
    kind, call = static(layer, "call", evaluator.reads)
    # Keras fills in masks and whether it is for training, where the call takes them.
    named = {name: value for name, value in arguments.named.items() if name not in ("mask", "training")}
    filled = arguments._replace(named=named, more=DATA_ALONE | (arguments.more or frozenset()))
    if kind == "value":  # put into this layer alone
        given: Value = evaluator.outright(call, filled)
        return given
    call = vocabulary.python_of(call)
    if kind != "method" or not isinstance(call, types.FunctionType):
        raise RefusedError(f"calls a {type(layer).__name__}, by no function")
    if is_own(inner := innermost(call)):
        evaluator.require_passing_on(call)
        found: Value = evaluator.call(inner, _bound(layer, filled))
        return found
    if id(layer) not in evaluator.layers:
        evaluator.layers[id(layer)] = layer
        evaluator.reads.read("configuration", layer)
        _stock(evaluator, layer)
    return DATA_ALONE


def _bound(layer: Any, arguments: Arguments) -> Arguments:
    return arguments._replace(positional=(frozenset({Known(layer)}), *arguments.positional))


def _require_stock(evaluator: Any, layer: Any) -> None:
    """Nothing that Keras calls is the script's, but what is seen."""
    cls = type(layer)
    if is_scripts(type(cls)):
        raise RefusedError(f"has the class {cls.__name__}, whose own class is the script's")
    stock = next(base for base in cls.__mro__ if is_keras(base))
    for base in cls.__mro__[: cls.__mro__.index(stock)]:
        for name, value in vars(base).items():
            if name in _ASKED:
                raise RefusedError(f"has {cls.__name__}.{name}, which Keras may call")
            if name.startswith("__") or name in _SEEN or name in _BESIDE or name in TRAINING:
                continue
            if hasattr(stock, name) and (hasattr(type(value), "__get__") or callable(value)):
                raise RefusedError(f"has {cls.__name__}.{name}, which Keras may call")
    mask = innermost(in_class(cls, "compute_mask", evaluator.reads))
    if is_own(mask):
        evaluator.call(mask, ANY._replace(positional=(frozenset({Known(layer)}),)))


def _stock(evaluator: Any, layer: Any) -> None:
    """A layer with a call of Keras': those within, and what the script has chosen of functions."""
    for value in (*chosen_by_script(layer), *_of_operations(layer)):
        _seen(evaluator, value)
    for base in type(layer).__mro__:
        others = [name for name, each in vars(base).items() if is_keras(base) and is_own(innermost(each))]
        if others:
            raise RefusedError(f"has {base.__name__}.{others[0]}, in whose place the script has put another")
    for each in layer._flatten_layers():
        if each is not layer:
            called(evaluator, each, ANY)


def _of_operations(layer: Any) -> list[Any]:
    """What operations between layers hold and are given that may be called: those of Keras 3 are no layers."""
    found: list[Any] = []
    for each in getattr(layer, "_operations", None) or ():
        if is_layer(each):
            continue
        if not is_keras(type(each)):
            raise RefusedError(f"has an operation of the script's own ({type(each).__name__})")
        given = [(*node.arguments.args, *node.arguments.kwargs.values()) for node in each._inbound_nodes]
        held = tf.nest.flatten([given, [value for name, value in vars(each).items() if not name.startswith("_")]])
        found += [value for value in held if is_own(value) or isinstance(value, functools.partial)]
    return found


def _seen(evaluator: Any, value: Any) -> None:
    if isinstance(value, list | tuple | set | frozenset | dict):
        for each in value.values() if isinstance(value, dict) else value:
            _seen(evaluator, each)
    elif isinstance(value, functools.partial) or callable(value):
        if not is_layer(value):
            evaluator.anyhow(Known(value))
    elif is_scripts(value):
        raise RefusedError(f"holds a {type(value).__name__}, which may do more than to compute")
