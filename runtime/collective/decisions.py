"""Values from which every rank takes the same decision: early stopping, the best checkpoint, a lower rate."""

import datetime
import numbers
import pathlib
import time
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import Sum, TfdpError, call_site
from ..framework import as_written
from ..job import current, shards_calls
from . import operations as collectives

_DATES = (datetime.date, datetime.time, datetime.timedelta, time.struct_time)
_VALUES = (numbers.Number, str, bytes, uuid.UUID, pathlib.PurePath, *_DATES)


@as_written
def metric_result(metric: Any) -> Any:
    """What `metric.result()` would be had one metric object seen all ranks' examples; the same bits on every rank.

    The state variables are summed over the ranks for the length of this call, and the local ones put back: the metric
    can be updated further, or reset. Exact where the state consists of sums over examples: means, accuracies, AUC,
    precision and recall, root mean squared error, intersection over union, F-scores, R2, counts. Not where it is
    anything else, as in a metric of your own that keeps a maximum.

    Args:
        metric: a Keras 2 or Keras 3 metric that every rank has updated with its own share of the examples.

    Raises:
        TfdpError: it has no state variables, so that nothing can be summed.
        CollectiveMismatchError: the ranks' metrics differ in their variables.
    """
    if current().topology.size == 1 or shards_calls():  # then it has seen all examples
        return metric.result()
    variables = _state(metric)
    local = [tf.identity(tf.convert_to_tensor(variable)) for variable in variables]
    try:
        _assign(variables, collectives.grouped_allreduce(local, Sum, name=f"metric {metric.name}"))
        result = tf.nest.map_structure(_copied, metric.result())
    finally:
        _assign(variables, local)
    return result


def _state(metric: Any) -> list[Any]:
    found = list(getattr(metric, "variables", ()))
    if not found:
        raise TfdpError(f"{metric!r} at {call_site()} has no state variables to be summed over the ranks")
    return found


def _assign(variables: Sequence[Any], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _copied(value: Any) -> Any:
    """A tensor that does not follow the variable that it was read from."""
    return tf.identity(value) if tf.is_tensor(value) else value


@as_written
def average_value(value: Any, name: str | None = None) -> Any:
    """The mean of all ranks' values; the same bits on every rank.

    Exact for a value that is itself a mean over this rank's examples, of which all ranks have equally many.

    Args:
        value: a number, a NumPy value or a tensor, of the same shape on all ranks. A Python number comes back as a
            float, a NumPy value as NumPy, a tensor as a tensor. Integers are averaged as float64.
        name: used in messages.
    """
    if current().topology.size == 1:
        return value
    given = value if tf.is_tensor(value) else tf.convert_to_tensor(np.asarray(value))
    if not given.dtype.is_floating:
        given = tf.cast(given, tf.float64)
    result = collectives.allreduce(given, name=name)
    if tf.is_tensor(value):
        return result
    return float(result) if isinstance(value, numbers.Number) and not isinstance(value, np.generic) else result.numpy()


@as_written
def agree(answer: Any) -> Any:
    """Rank 0's answer to a question that decides something, `if dp.agree(loss < best):`, or its value where each rank
    has one of its own: `run = dp.agree(datetime.now())`. Every rank asks.

    For values that are equal on all ranks but for their last bits (a validation loss over the same examples) or but
    for the moment at which they were read (a clock, the files in a folder). It does not make values of different
    examples equal: `dp.average_value` and `dp.metric_result` do.

    Args:
        answer: a number, a text, bytes, a date or time, a UUID or a path; or anything with a truth value.

    Returns:
        The number, text, …; of anything else a bool. A boolean scalar tensor inside a `tf.function`. With one
        worker the answer as it is.
    """
    if current().topology.size == 1:
        return answer
    if not tf.executing_eagerly():
        return collectives.broadcast(tf.cast(answer, tf.bool), name="agree")
    given = answer if isinstance(answer, _VALUES) else bool(answer)
    return collectives.broadcast_object(given, name="agree")
