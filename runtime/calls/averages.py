"""Gradients of variables are averaged over the workers where they are taken, whoever takes them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..collective import is_recording
from ..foundation import Average, TfdpError, call_site
from ..framework import as_written, is_variable, name_of
from ..gradients import Compression, Exchange
from ..job import current
from ..start import creation_ordinals, watched
from . import nets, report, sight
from .rows import mean


class _Passengers:
    """Several passengers of an exchange, one after the other."""

    def __init__(self, passengers: Sequence[Any]) -> None:
        self._passengers = passengers
        self._widths: list[int] = []

    def sent(self, dtype: tf.DType) -> Any:
        parts = [each.sent(dtype) for each in self._passengers]
        self._widths = [int(each.shape[0]) for each in parts]
        return tf.concat(parts, 0)

    def received(self, total: Any, ranks: int) -> None:
        for each, part in zip(self._passengers, tf.split(total, self._widths), strict=True):
            each.received(part, ranks)


def average_gradients() -> None:
    """From now on `tf.GradientTape.gradient` gives for variables the mean over the workers."""
    original = tf.GradientTape.gradient

    @functools.wraps(original)
    def gradient(self: Any, target: Any, sources: Any, *arguments: Any, **options: Any) -> Any:
        found = original(self, target, sources, *arguments, **options)
        flat = tf.nest.flatten(sources)
        if sight.now() is not None or not any(map(is_variable, flat)):
            return found
        return tf.nest.pack_sequence_as(sources, _averaged(target, flat, tf.nest.flatten(found)))

    tf.GradientTape.gradient = as_written(gradient)
    _refuse_jacobians()


def _averaged(target: Any, sources: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
    site = call_site()
    if threading.current_thread() is not threading.main_thread():
        raise TfdpError(
            f"the gradient at {site} is taken in a thread of its own: workers could not know which of them belong "
            "together. Train in the main thread"
        )
    for index, each in enumerate(tf.nest.flatten(target)):
        nets.note(f"target {index + 1} of the gradient", each)
    found = list(gradients)
    dense = []
    for index, (source, each) in enumerate(zip(sources, gradients, strict=True)):
        if each is None:
            continue
        if isinstance(each, tf.IndexedSlices) or not is_variable(source):
            nets.note(f"the gradient of {_name(source, index)}", each)
        else:
            dense.append(index)
    ordinals = creation_ordinals()
    dense.sort(key=lambda index: ordinals.get(id(sources[index].handle), len(ordinals)))
    if not dense:
        return found
    names = [_name(sources[index], index) for index in dense]
    given = [gradients[index] for index in dense]
    averaged = [mean(each, name) for each, name in zip(given, names, strict=True)] if is_recording() else None
    if averaged is None:
        averaged = _exchanged([sources[index] for index in dense], given, names, site)
    for index, each in zip(dense, averaged, strict=True):
        found[index] = each
    return found


def _exchanged(variables: Sequence[Any], given: Sequence[Any], names: Sequence[str], site: str) -> list[Any]:
    job = current()
    with tf.name_scope("averaged_gradient"):
        watch = watched(variables, [], job)
        passengers = _Passengers([each for each in (watch, nets.Notes()) if each is not None])
        exchange = Exchange(job, Average, None, Compression.none, 1.0, False, False)
        with tf.control_dependencies(watch.compared() if watch else []):
            return exchange.combined(given, names, site, passengers)


def _name(source: Any, index: int) -> str:
    return name_of(source) if is_variable(source) else f"source {index}"


def _refuse_jacobians() -> None:
    """Of variables: they would be those of a worker's rows."""
    original = tf.GradientTape.jacobian

    @functools.wraps(original)
    def jacobian(self: Any, target: Any, sources: Any, *arguments: Any, **options: Any) -> Any:
        if any(map(is_variable, tf.nest.flatten(sources))) and report.is_anything_divided():
            raise NotImplementedError(
                f"tape.jacobian for variables at {call_site()}: with sharded calls it would be that of this worker's "
                "rows. Take tape.gradient of each number"
            )
        return original(self, target, sources, *arguments, **options)

    tf.GradientTape.jacobian = as_written(jacobian)
