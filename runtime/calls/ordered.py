"""Datasets give all workers the same elements in the same order.

TensorFlow runs the calls of `map(…, num_parallel_calls=…)` at the same time, and which element gets which random number
is a matter of the moment: stages that draw, or keep a state, take one element after the other here. What is drawn by
stateless operations, and all else, goes on at the same time. With `deterministic=False` the order itself is a matter of
the moment, and is not here.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from ..foundation import call_site, say_once
from ..framework import around_stages, keeps_state, transparent
from ..job import current, is_initialized

_PARALLEL, _DETERMINISTIC = "num_parallel_calls", "deterministic"
_STAGES = ("batch", "interleave", "map", "ragged_batch")


class _Last(threading.local):
    """Whether what is traced for a stage, in this thread, is asked for a state, and whether the last one keeps any."""

    is_asked = False
    keeps_state = False


_last = _Last()


class _Calls:
    """A number of calls at the same time, which TensorFlow asks for when it has traced the stage's function."""

    def __init__(self, asked: Any, site: str) -> None:
        self._asked, self._site = asked, site

    def __tf_tensor__(self, dtype: Any = None, name: Any = None) -> Any:
        if not _last.keeps_state:
            return tf.convert_to_tensor(self._asked, dtype, name=name)
        if is_initialized() and current().topology.rank == 0:
            say_once(
                f"the stage at {self._site} draws random numbers or keeps a state, so that its calls run one after the "
                "other: all workers must have the same rows. tf.random.stateless_… and tf.image.stateless_random_… "
                "can run at the same time"
            )
        return tf.convert_to_tensor(1, dtype, name=name)


def order_stages() -> None:
    """From now on they do."""
    around_stages(_staged)
    dataset = tf.data.Dataset
    for name in _STAGES:
        setattr(dataset, name, transparent(_in_order(getattr(dataset, name))))
    dataset.with_options = transparent(_ordered(dataset.with_options))


def _staged(trace: Callable[[], Any], _name: str) -> None:
    function = trace()
    if _last.is_asked:
        _last.keeps_state = keeps_state(function.graph)


@contextlib.contextmanager
def _asked() -> Iterator[None]:
    before, _last.is_asked, _last.keeps_state = _last.is_asked, True, False
    try:
        yield
    finally:
        _last.is_asked = before


def _in_order(stage: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(stage)

    @functools.wraps(stage)
    def in_order(*given: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*given, **options)
        except TypeError:
            return stage(*given, **options)  # which says what is wrong with them
        if bound.arguments.get(_DETERMINISTIC) is False:
            bound.arguments[_DETERMINISTIC] = True
        if bound.arguments.get(_PARALLEL) is None:
            return stage(*bound.args, **bound.kwargs)
        bound.arguments[_PARALLEL] = _Calls(bound.arguments[_PARALLEL], call_site())
        with _asked():
            made = stage(*bound.args, **bound.kwargs)
        if stage.__name__ != "interleave" or not _last.keeps_state:
            return made
        # Even one call at a time takes elements ahead of which nobody has asked, as the moment will have it.
        for name in (_PARALLEL, _DETERMINISTIC):
            bound.arguments.pop(name, None)
        return stage(*bound.args, **bound.kwargs)

    return in_order


def _ordered(with_options: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(with_options)
    def ordered(self: Any, options: Any, *given: Any, **named: Any) -> Any:
        made = with_options(self, options, *given, **named)
        if getattr(options, _DETERMINISTIC, None) is not False:
            return made
        order = tf.data.Options()
        order.deterministic = True
        return with_options(made, order)

    return ordered
