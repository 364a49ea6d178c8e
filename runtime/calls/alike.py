"""Layers of Keras' own that are alike: what a look at one has found holds for the others.

What such a layer does with rows follows from its class, its settings and the shapes of what it is given and holds, and
from no number. A network may have hundreds of a few kinds.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import tensorflow as tf

from ..keras import is_keras
from . import examples, own_code, replaced

# Of those whose call is told whether it trains, the ones that go by it only where they quantise, which is a setting.
_TRAIN_ALIKE = ("Dense", "EinsumDense")


def kind_of(layer: Any, structure: Any, by_rows: Any) -> Any:
    """By what a call of one is like that of another, given arguments of this structure; None where that is not known:
    it has layers inside, or a call like it may draw or not."""
    cls = type(layer)
    if not (hasattr(cls, "_flatten_layers") and is_keras(cls)) or len(own_code.configuration(layer)) != 1:
        return None
    if "training" in inspect.signature(cls.call).parameters and cls.__name__ not in _TRAIN_ALIKE:
        return None
    settings, given = _settings(layer), examples.exactly(tf.nest.flatten(structure))
    text, held = repr(settings), [*tf.nest.flatten(settings), *vars(layer).values()]
    if (
        settings is None
        or given is None
        or " at 0x" in text
        or any(isinstance(each, np.ndarray | tf.Tensor) for each in held)
    ):
        return None
    shapes = tuple((each.dtype, tuple(each.shape)) for each in layer.variables)
    order = str(tf.nest.map_structure(lambda _: None, structure))
    return text, attributes(layer), shapes, order, given, _twice(structure), tuple(by_rows), replaced.changes()


def _settings(layer: Any) -> dict[str, Any] | None:
    """What makes such a layer but for its name; None where that cannot be told."""
    try:
        return {name: value for name, value in layer.get_config().items() if name != "name"}
    except Exception:
        return None


def attributes(layer: Any) -> tuple[Any, ...]:
    """Its class, and its attributes that are plain or functions: Keras wraps some of its own for each layer anew."""
    functions = {name: each for name, each in vars(layer).items() if hasattr(each, "__code__")}
    (plain,) = own_code.configuration(layer)
    public = (each for each in plain[2:] if each[0] not in ("name", "built", *functions))
    return (
        type(layer),
        *public,
        *((name, each.__code__ if is_keras(each) else each) for name, each in functions.items()),
    )


def _twice(structure: Any) -> tuple[int, ...]:
    """Which of the arguments are one thing."""
    leaves = list(map(id, tf.nest.flatten(structure)))
    return tuple(map(leaves.index, leaves))
