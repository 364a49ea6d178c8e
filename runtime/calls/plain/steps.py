"""The step by which Keras validates a model that `fit` trains: where it is traced once more than in one process."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from ...keras import is_keras
from . import layers
from .evaluate import Evaluator
from .reads import Reads, innermost, is_own, is_scripts
from .values import ANY, Arguments, Known, RefusedError
from .verdicts import Verdict, judged

# What Keras calls of a model, and of layers, in such a step besides their calls.
_OF_STEP = ("compute_loss", "compute_metrics", "losses", "make_test_function", "metrics", "test_step")
# Attributes of layers and variables that hold what it computes losses by.
_OF_LOSSES = ("regularizer", "callable_losses")
# Of a metric what such a step calls, and what is called before it and beside it.
_OF_METRICS = ("update_state", "result")
_BESIDE = frozenset({"__init__", "from_config", "get_config", "reset_state", "reset_states"})
_DEPTH = 6  # of what a model was compiled with


def verdict_of_step(model: Any, compiled_with: Sequence[Any]) -> Verdict:
    """Whether code of the script's own that the step may come to only computes."""
    reads = Reads()
    evaluator = Evaluator(reads, traces=True)
    return judged(reads, functools.partial(_judge, evaluator, model, compiled_with))


def _judge(evaluator: Evaluator, model: Any, compiled_with: Sequence[Any]) -> None:
    for each in model._flatten_layers():
        _require_stock(evaluator, each)
        for of in (each, *each.variables):
            held = getattr(of, "__dict__", {})
            losses = [value for name, value in held.items() if any(part in name for part in _OF_LOSSES)]
            for value in _own_in(losses, 0):
                evaluator.anyhow(Known(value))
    layers.called(evaluator, model, ANY)
    for value in _own_in(compiled_with, 0):
        if hasattr(value, "update_state") and any(map(is_keras, type(value).__mro__)):
            _metric(evaluator, value)
        else:
            evaluator.anyhow(Known(value))


def _metric(evaluator: Evaluator, metric: Any) -> None:
    cls = type(metric)
    stock = next(base for base in cls.__mro__ if is_keras(base))
    for base in cls.__mro__[: cls.__mro__.index(stock)]:
        for name, value in vars(base).items():
            if name in _OF_METRICS:
                evaluator.call(value, ANY._replace(positional=(frozenset({Known(metric)}),)))
            elif hasattr(stock, name) and hasattr(type(value), "__get__") and name not in _BESIDE:
                raise RefusedError(f"has {base.__name__}.{name}, which Keras may call")


def _require_stock(evaluator: Evaluator, layer: Any) -> None:
    for base in type(layer).__mro__:
        for name in _OF_STEP:
            value = None if is_keras(base) else vars(base).get(name)
            if name == "metrics" and isinstance(value, property):
                evaluator.call(value.fget, Arguments((frozenset({Known(layer)}),)))
            elif value is not None:
                raise RefusedError(f"has a {name} of its own ({base.__name__})")


def _own_in(value: Any, depth: int) -> Iterator[Any]:
    """The functions of the script's in what Keras calls, and the objects of its classes."""
    if isinstance(value, list | tuple | set | frozenset | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _own_in(each, depth)
    elif is_scripts(value) or is_own(innermost(value)) or isinstance(value, functools.partial):
        yield value
    elif is_keras(type(value)) and not hasattr(value, "apply_gradients") and _holds_more(value):
        if depth == _DEPTH:
            raise RefusedError(f"is compiled with a {type(value).__name__}, which holds too much to be followed")
        yield from _own_in(list(getattr(value, "__dict__", {}).values()), depth + 1)


def _holds_more(value: Any) -> bool:
    """A layer is looked at where it is called; in Keras 2 a metric is one."""
    return not layers.is_layer(value) or hasattr(value, "update_state")
