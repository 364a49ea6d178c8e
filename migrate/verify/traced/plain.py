"""Horovod and SMDDP in their plain meaning, for the reference of a script that keeps their names.

The script runs as it is, on as many processes; its imports give the runtime's modules of those names, of which the
arithmetic is replaced: every rank's values are gathered, and averaged in float64. None of the runtime's exchanges,
buckets or reductions is used, so that they are held against this.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ....runtime.horovod import MODULES

_OF_SMDDP = ("smdistributed", "smdistributed.dataparallel", "smdistributed.dataparallel.tensorflow")


def install() -> None:
    """Before the script is run. Not at the top: all instruments are in place before the runtime is imported."""
    from ....runtime import collective
    from ....runtime.gradients import Exchange

    operations = sys.modules[collective.exchanged.__module__]
    operations.exchanged = collective.exchanged = _exchanged  # type: ignore[attr-defined,assignment]
    Exchange.combined = _combined  # type: ignore[method-assign,assignment]


def name_modules() -> None:
    """From now on the systems' own names are those of the runtime's modules, in every file of the script's, and Keras
    takes what such scripts give it, as it does of migrated ones."""
    from .... import runtime

    _take_what_keras_2_took()

    for name in (*MODULES, *_OF_SMDDP):
        sys.modules[name] = importlib.import_module(f"tfdp.runtime.{name}")
    sparkdl = types.ModuleType("sparkdl")
    sparkdl.HorovodRunner = runtime.Runner  # type: ignore[attr-defined]
    sys.modules["sparkdl"] = sparkdl


class _Callable(list[Any]):
    """`optimizer.variables` of Keras 2, which is a list and a method."""

    def __call__(self) -> list[Any]:
        return self


def _take_what_keras_2_took() -> None:
    """What Horovod's scripts write that Keras 3 takes no more, so that they run as they are."""
    optimizer = tf.keras.optimizers.Optimizer
    known = next(vars(cls)["variables"] for cls in optimizer.__mro__ if "variables" in vars(cls))
    if isinstance(known, property) and known.fget is not None:
        given = known.fget
        optimizer.variables = property(lambda self: _Callable(given(self)))
    owner: Any = next(cls for cls in tf.keras.Model.__mro__ if "compile" in vars(cls))  # where Keras looks for whose
    compiles = owner.compile

    def compile_(self: Any, *args: Any, experimental_run_tf_function: Any = None, **options: Any) -> Any:
        del experimental_run_tf_function
        return compiles(self, *args, **options)

    owner.compile = compile_


def _exchanged(_: Any, tensors: Sequence[Any], op: Any, label: Any) -> list[Any]:
    """In place of the exchange of the collective functions."""
    return [_reduced(tensor, op, label.name) for tensor in tensors]


def _reduced(tensor: Any, op: Any, name: str | None) -> Any:
    from ....runtime import collective
    from ....runtime.foundation import Average, Max, Min, Product, Sum

    rows = collective.allgather(tf.expand_dims(tensor, 0), name)
    wide = tf.cast(rows, tf.float64) if tensor.dtype.is_floating else rows
    if op is Average and not tensor.dtype.is_floating:
        total = tf.reduce_sum(wide, 0)
        return tf.math.sign(total) * (tf.abs(total) // tf.cast(tf.shape(rows)[0], total.dtype))
    how: dict[Any, Callable[..., Any]] = {
        Average: tf.reduce_mean,
        Max: tf.reduce_max,
        Min: tf.reduce_min,
        Product: tf.reduce_prod,
        Sum: tf.reduce_sum,
    }
    return tf.cast(how[op](wide, 0), tensor.dtype)


def _combined(
    exchange: Any, gradients: Sequence[Any], names: Sequence[str], site: str, passenger: Any = None
) -> list[Any]:
    """In place of `Exchange.combined`: what its arguments say, for one gradient after the other."""
    from ....runtime import collective
    from ....runtime.foundation import Average
    from ....runtime.gradients import count_exchange

    del names, site, passenger
    count_exchange()
    ranks = exchange.job.topology.size
    found: list[Any] = []
    for given in gradients:
        gradient = tf.convert_to_tensor(given) if exchange.sparse_as_dense and given is not None else given
        if gradient is None:
            found.append(None)
        elif isinstance(gradient, tf.IndexedSlices):
            values = collective.allgather(gradient.values)
            values = values / ranks if exchange.op is Average else values
            found.append(tf.IndexedSlices(values, collective.allgather(gradient.indices), gradient.dense_shape))
        else:
            sent, context = exchange.compression.compress(gradient / exchange.predivide)
            total = tf.reduce_sum(tf.cast(collective.allgather(tf.expand_dims(sent, 0)), tf.float64), 0)
            if exchange.op is Average and exchange.predivide == 1:
                total /= ranks  # before it is rounded to what is sent, as an average is
            received = tf.cast(exchange.compression.decompress(tf.cast(total, sent.dtype), context), tf.float64)
            factor = exchange.predivide / ranks if exchange.predivide != 1 else 1.0
            found.append(tf.cast(received * factor, gradient.dtype))
    return found
