"""Who is told of variables that are read: graphs that are built, and functions with a gradient of their own.

TensorFlow has nothing public for either.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf


class _Thread(threading.local):
    def __init__(self) -> None:
        self.watchers: list[Any] = []


_thread = _Thread()


def follow_watchers() -> None:
    """From now on `unwatched` knows which functions with a gradient of their own are being called."""
    from tensorflow.python.eager import record

    watcher: Any = record.VariableWatcher
    enter, leave = watcher.__enter__, watcher.__exit__

    def entered(self: Any) -> Any:
        found = enter(self)
        _thread.watchers.append(self)
        return found

    def left(self: Any, *error: Any) -> Any:
        _thread.watchers.remove(self)
        return leave(self, *error)

    watcher.__enter__, watcher.__exit__ = entered, left


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Variables that are read inside, under `tf.init_scope`, are none of the graph that is being built, which refuses
    to run once one of its variables is gone; and none of a function with a gradient of its own, which is to give one
    for each that it has read."""
    with _no_graph_is_told(), _no_watcher_is_told():
        yield


@contextlib.contextmanager
def _no_graph_is_told() -> Iterator[None]:
    graph = tf.compat.v1.get_default_graph()
    if not hasattr(graph, "watch_variable"):
        yield
        return
    graph.watch_variable = lambda variable: None  # noqa: ARG005 - as TensorFlow calls it
    try:
        yield
    finally:
        del graph.watch_variable


@contextlib.contextmanager
def _no_watcher_is_told() -> Iterator[None]:
    """Those outside are taken away, and begin again with what they have been told."""
    from tensorflow.python import pywrap_tfe

    outside, _thread.watchers = _thread.watchers, []
    told = [each.watched_variables() for each in outside]
    for each in outside:
        pywrap_tfe.TFE_Py_VariableWatcherRemove(each._variable_watcher)
    try:
        yield
    finally:
        _thread.watchers = outside
        for each, variables in zip(outside, told, strict=True):  # the outer ones first: they are told of all
            each._variable_watcher = pywrap_tfe.TFE_Py_VariableWatcherNew()
            for variable in variables:
                pywrap_tfe.TFE_Py_VariableWatcherVariableAccessed(variable)
