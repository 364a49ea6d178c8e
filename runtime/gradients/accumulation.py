"""Gradients of several passes, added up on this rank until it is time to exchange them."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..foundation import call_site
from .exchange import Gradient

# What adds up: a variable; of slices, one for the values and one for the rows; nothing where there is no gradient.
Sum = tuple[Any, ...]


class Accumulation:
    """Sums for each list of variables that gradients come for, made at the first pass."""

    def __init__(self, passes: int, mean: bool) -> None:
        self._passes, self._divisor = passes, passes if mean else 1
        # With the variables themselves: an id is used again once its object is gone.
        self._sums: dict[tuple[int, ...], tuple[Any, list[Sum], list[Any]]] = {}

    def add(
        self,
        gradients: Sequence[Gradient],
        variables: Sequence[Any],
        complete: Callable[[list[Gradient]], Any],
        otherwise: Callable[[], Any],
    ) -> None:
        """Add one pass; call `complete` with the sums and start again if it was the last one, else `otherwise`."""
        key = tuple(map(id, variables))
        if key not in self._sums:
            # Out of whatever is being traced: variables outlive it.
            with tf.init_scope():
                counter = tf.Variable(0, trainable=False, dtype=tf.int64, name="tfdp_passes")
                self._sums[key] = counter, [_new_sum(each) for each in gradients], list(variables)
        counter, sums, _ = self._sums[key]
        for gradient, held in zip(gradients, sums, strict=True):
            _add(gradient, held)
        counter.assign_add(1)

        def last() -> Any:
            given = [_taken(gradient, held, self._divisor) for gradient, held in zip(gradients, sums, strict=True)]
            counter.assign(0)
            complete(given)
            return tf.constant(True)

        def another() -> Any:
            otherwise()
            return tf.constant(False)

        tf.cond(tf.equal(counter, self._passes), last, another)


def _new_sum(gradient: Gradient) -> Sum:
    if gradient is None:
        return ()
    if isinstance(gradient, tf.IndexedSlices):
        return _rows(gradient.values), _rows(gradient.indices)
    return (tf.Variable(tf.zeros(gradient.shape, gradient.dtype), trainable=False, name="tfdp_sum"),)


def _rows(tensor: Any) -> Any:
    """A variable for however many rows."""
    row = tensor.shape[1:]
    none = tf.zeros([0, *row], tensor.dtype)
    return tf.Variable(none, trainable=False, shape=tf.TensorShape([None, *row]), name="tfdp_slices")


def _add(gradient: Gradient, held: Sum) -> None:
    parts = _parts(gradient)
    if len(parts) != len(held):
        raise TypeError(
            f"a gradient at {call_site()} is of another kind (dense, sparse, None) than at the first pass: with "
            "backward_passes_per_step each pass has gradients for the same variables"
        )
    for part, variable in zip(parts, held, strict=True):
        variable.assign(variable + part if len(held) == 1 else tf.concat([variable, part], 0))


def _taken(like: Gradient, held: Sum, divisor: int) -> Gradient:
    """The sum, divided; what is held becomes zero."""
    found = [variable.read_value() for variable in held]
    with tf.control_dependencies([tf.identity(each) for each in found]):
        for variable in held:
            empty = variable.shape.rank is not None and not variable.shape.is_fully_defined()
            variable.assign(tf.zeros([0, *variable.shape[1:]], variable.dtype) if empty else tf.zeros_like(variable))
    if not found:
        return None
    values = found[0] if divisor == 1 else found[0] / tf.cast(divisor, found[0].dtype)
    return tf.IndexedSlices(values, found[1], like.dense_shape) if len(found) == 2 else values


def _parts(gradient: Gradient) -> tuple[Any, ...]:
    if gradient is None:
        return ()
    return (gradient.values, gradient.indices) if isinstance(gradient, tf.IndexedSlices) else (gradient,)
