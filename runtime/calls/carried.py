"""What Keras attaches to a tensor, or reads from it, besides its numbers.

`_keras_mask` says which steps of a sequence count. Behind a softmax or sigmoid Keras' crossentropies look for the
logits: as the attribute `_keras_logits`, or as the input of the operation that has made the tensor, if that is one. A
tensor that stands for another one carries the same, else the loss of a saturated head would have next to no gradient.
tests/calls compares with what the installed Keras knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from ..framework import linked, unrecorded
from . import gathering

MASK, LOGITS = "_keras_mask", "_keras_logits"
_NOUGHT = "_is_zeros_tensor"  # of what tf.zeros gives: what may save a second derivative of a crossentropy a part
_ARGUMENTS = {"Softmax": "logits", "Sigmoid": "x"}


class Carried(NamedTuple):
    """What a tensor carries."""

    mask: Any
    logits: Any


def of(tensor: Any) -> Carried:
    """What the tensor carries."""
    return Carried(getattr(tensor, MASK, None), getattr(tensor, LOGITS, None))


def is_marked(thing: Any) -> bool:
    """Whether it is a tensor to which the script has attached something: one that stands for it would not have that."""
    names = getattr(thing, "__dict__", {}) if isinstance(thing, tf.Tensor) else {}
    return any(not name.startswith(("_keras", "_tf", "_op", "_id")) and name != _NOUGHT for name in names)


def has_one_mask_for_all(thing: Any) -> bool:
    """Whether it is a tensor whose mask has not a row for each of its own: of that a worker has no rows."""
    mask = getattr(thing, MASK, None) if isinstance(thing, tf.Tensor) else None
    if mask is None or not thing.shape.rank:
        return False
    return not mask.shape.rank or mask.shape[0] not in (None, thing.shape[0])


def all_of(tensor: Any) -> Iterator[Any]:
    """The tensor and what it carries, the operation's argument included that Keras would look at."""
    yield tensor
    yield from (each for each in of(tensor) if each is not None)
    if _operation(tensor) in _ARGUMENTS:
        yield tensor.op.inputs[0]


def put(carried: Carried, tensor: Any, change: Callable[[Any], Any]) -> None:
    """Let the tensor carry what another one does, changed as that was."""
    if carried.mask is not None:
        setattr(tensor, MASK, change(carried.mask))
    if carried.logits is not None:
        setattr(tensor, LOGITS, change(carried.logits))


def moved(tensor: Any, change: Callable[[Any], Any]) -> Any:
    """`change(tensor)`, which carries what the tensor does."""
    has = of(tensor)
    kind = _operation(tensor)
    if kind not in _ARGUMENTS:
        found = change(tensor)
        put(has, found, change)
        return found
    # The operation once more, for those that look at what has made a tensor. An attribute in its place would be seen
    # by losses that do not look at raw operations.
    inner = tensor.op.inputs[0]
    logits = change(inner)
    with unrecorded():
        found = gathering.through(lambda each: getattr(tf.raw_ops, kind)(**{_ARGUMENTS[kind]: each}), logits)
    linked(found, change(tensor), lambda upstream: upstream)
    put(has._replace(logits=None), found, change)
    if has.logits is not None:
        setattr(found, LOGITS, logits if has.logits is inner else change(has.logits))
    return found


def taken_apart(tensors: Sequence[Any]) -> list[Any]:
    """Tensors, each with the mask and the logits that it carries behind it."""
    return [each for tensor in tensors for each in (tensor, *of(tensor)) if each is not None]


def put_together(like: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
    """Tensors out of such parts, which carry what those of `like` do."""
    waiting, found = iter(parts), []
    for each in like:
        tensor = next(waiting)
        put(of(each), tensor, lambda _: next(waiting))
        found.append(tensor)
    return found


def _operation(tensor: Any) -> str:
    """The type of the operation that has made a tensor of a graph, of the same shape; "" elsewhere."""
    if not isinstance(tensor, tf.Tensor) or hasattr(tensor, "numpy"):
        return ""
    operation = tensor.op
    same = operation.type in _ARGUMENTS and operation.inputs[0].shape.rank == tensor.shape.rank
    return str(operation.type) if same else ""
