"""What Keras logs at the end of an epoch, over all ranks' examples.

Metric objects are combined by their state: the sum over the ranks is the state that one object would have after all
examples, so that means are weighted by examples and AUC, precision and the like are exact.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .. import collective as collectives
from ..foundation import Sum
from ..job import current

_SUMMABLE = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)
# Ranks that evaluate one model on the same examples differ by rounding alone; ranks that evaluate different ones by
# more, if there are fewer than some 1e8.
_SAME = 1e-4

Results = dict[str, Any]


def metric_variables(model: Any) -> list[Any]:
    """The state of the model's metric objects that can be summed, each variable once."""
    found: dict[int, Any] = {}
    for metric in model.metrics:
        for variable in metric.variables:
            if tf.as_dtype(variable.dtype) in _SUMMABLE:
                found.setdefault(id(variable.handle), variable)
    return list(found.values())


def local_results(model: Any) -> Results:
    """What the model's metrics say about this rank's examples: arrays by name."""
    found = model.get_metrics_result()
    return {name: np.asarray(value) for name, value in found.items() if is_number(value)}


def summed_results(model: Any) -> Results:
    """What the model's metrics would say had they seen all ranks' examples. Every rank calls it."""
    variables = metric_variables(model)
    if not variables:
        return {}
    local = [tf.identity(tf.convert_to_tensor(variable)) for variable in variables]
    try:
        _assign(variables, collectives.grouped_allreduce(local, Sum, name="state of the model's metrics"))
        return local_results(model)
    finally:
        _assign(variables, local)


def saw_the_same(model: Any, logs: Mapping[str, Any]) -> bool:
    """Whether all ranks' metrics have the same state but for rounding: all have seen the same examples.

    Every rank calls it. With one answer on all ranks.
    """
    state = [np.asarray(tf.cast(tf.convert_to_tensor(each), tf.float64)) for each in metric_variables(model)]
    values = [np.asarray(logs[name], np.float64) for name in _numeric(logs)]
    rows = _gathered([*state, *values], "results of the validation")
    return bool(np.allclose(rows, rows[0], rtol=_SAME, atol=1e-7, equal_nan=True))


def is_number(value: Any) -> bool:
    """Whether a logged value can be averaged: a number, an array or a tensor of numbers."""
    try:
        return np.asarray(value).dtype.kind in "fiub"
    except (TypeError, ValueError):
        return False


def combine(logs: dict[str, Any], local: Results, total: Results, root_only: frozenset[str]) -> None:
    """Put into `logs` what holds for all ranks, the same on each. Every rank calls it.

    Args:
        logs: what Keras has logged on this rank.
        local: what this rank's metrics said, by name.
        total: what they say about all ranks' examples. A logged value that is its metric's is replaced by it; another
            one, such as the last batch's loss of a `train_step` of one's own, by the mean over the ranks.
        root_only: names whose values are rank 0's, because all ranks have computed the same.
    """
    names = _numeric(logs)
    if not names:
        return
    mine = [np.asarray(logs[name], np.float64) for name in names]
    matches = np.array([_same(local.get(name), logs[name]) for name in names], np.float64)
    rows = _gathered([*mine, matches], f"logs of an epoch: {', '.join(names)}")
    column = 0
    for index, (name, value) in enumerate(zip(names, mine, strict=True)):
        by_rank = rows[:, column : column + value.size].reshape([-1, *value.shape])
        column += value.size
        of_metric = name in total and rows[:, len(rows[0]) - len(names) + index].all()
        found = by_rank[0] if name in root_only else total[name] if of_metric else by_rank.mean(axis=0)
        logs[name] = float(found) if np.ndim(found) == 0 else np.asarray(found)


def _numeric(logs: Mapping[str, Any]) -> list[str]:
    return sorted(name for name, value in logs.items() if is_number(value))


def _same(result: Any, logged: Any) -> bool:
    if result is None or np.shape(result) != np.shape(logged):
        return False
    return bool(np.allclose(result, np.asarray(logged), rtol=1e-5, equal_nan=True))


def _gathered(parts: Sequence[Any], name: str) -> Any:
    """The parts of each rank, end to end: shape `[ranks, elements]`."""
    flat = np.concatenate([np.ravel(part) for part in parts]) if parts else np.zeros(0)
    rows = collectives.allgather(tf.constant(flat[None], tf.float64), name=name)
    return rows.numpy().reshape(current().topology.size, -1)


def _assign(variables: Sequence[Any], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
