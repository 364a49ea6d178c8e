"""Rows of all workers that are gathered where something asks for them.

What a divided call gives is often taken by another one alone, which needs a worker's own rows: layers called one after
the other, a loss of Keras'. So in a graph the exchange is put in where the first operation takes the whole tensor, and
where none does there is none.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..framework import unrecorded

_MARK = "_tfdp_gathering"  # of a whole tensor
_WAITING = "_tfdp_gatherings"  # of a graph: all of its

Tensor = Any


class _Thread(threading.local):
    expected = False  # what is built may take whole tensors before they are gathered


_thread = _Thread()


class Gathering:
    """Where a whole tensor comes from: a worker's own rows, and the exchange that may still have to be made."""

    def __init__(self, rows: Tensor, split: Any, ask: Callable[[], None] | None = None) -> None:
        """`ask` makes the exchange, unless `place` says how."""
        self.rows, self.split = rows, split
        self._ask = ask

    def place(self, make: Callable[[], Tensor], shape: Any) -> Tensor:
        """A tensor of this shape, which is `make()` once it is asked for."""
        found = tf.identity(tf.raw_ops.Placeholder(dtype=self.rows.dtype, shape=shape))

        def ask() -> None:
            with found.graph.as_default(), unrecorded():
                # What has been built of it stands. TensorFlow has no public way to put an input in later.
                found.op._update_input(0, make())

        self._ask = ask
        _waiting(found.graph).append(self)
        return found

    def ask(self) -> None:
        """Make the exchange, if it has not been made. Without it TensorFlow would not run what takes the tensor."""
        ask, self._ask = self._ask, None
        if ask is not None:
            ask()

    def mark(self, whole: Tensor) -> Tensor:
        """`whole`, of which it is known from now on where it comes from."""
        setattr(whole, _MARK, self)
        return whole


def is_possible() -> bool:
    """Whether an exchange can be put in later: where the function is built that makes it."""
    return not tf.executing_eagerly() and isinstance(tf.compat.v1.get_default_graph(), _function_graph())


def of(tensor: Any) -> Gathering | None:
    """Where a whole tensor of the graph that is being built comes from, if that is known."""
    found: Gathering | None = getattr(tensor, _MARK, None)
    return found if found is not None and tensor.graph is tf.compat.v1.get_default_graph() else None


def through(operation: Callable[[Tensor], Tensor], whole: Tensor) -> Tensor:
    """`operation(whole)`, an operation row by row; what is gathered for it is so where its result is asked for."""
    known = of(whole)
    if known is None:
        return operation(whole)
    before, _thread.expected = _thread.expected, True
    try:
        return Gathering(operation(known.rows), known.split, known.ask).mark(operation(whole))
    finally:
        _thread.expected = before


def _function_graph() -> Any:
    """The class of the graphs of a `tf.function`, which is private."""
    from tensorflow.python.framework import func_graph

    return func_graph.FuncGraph


def _waiting(graph: Any) -> list[Gathering]:
    """All of a graph."""
    found: list[Gathering] | None = getattr(graph, _WAITING, None)
    if found is None:
        found = []
        setattr(graph, _WAITING, found)
    return found


def ask_outside() -> None:
    """Make all exchanges that wait in graphs around the one that is built, whose own is to come after them."""
    graph = getattr(tf.compat.v1.get_default_graph(), "outer_graph", None)
    while isinstance(graph, _function_graph()):
        for each in list(_waiting(graph)):
            each.ask()
        _waiting(graph).clear()
        graph = graph.outer_graph


def watch_graphs() -> None:
    """From now on a graph asks for what its operations, its results and its functions take."""
    graph = _function_graph()
    capture, control = graph.capture, graph.control_dependencies

    @functools.wraps(capture)
    def captured(self: Any, tensor: Any, *arguments: Any, **options: Any) -> Any:
        _ask(tensor)
        return capture(self, tensor, *arguments, **options)

    @functools.wraps(control)
    def controlled(self: Any, control_inputs: Any) -> Any:
        for each in control_inputs or ():
            _ask(each)
        return control(self, control_inputs)

    graph.capture, graph.control_dependencies = captured, controlled
    _watch_outputs()


def _watch_outputs() -> None:
    """What a function gives is asked for as well, where nothing in it takes that: so it is with gradients."""
    from tensorflow.python.eager.polymorphic_function import atomic_function

    original = atomic_function.from_func_graph

    @functools.wraps(original)
    def from_func_graph(name: Any, graph: Any, *arguments: Any, **options: Any) -> Any:
        for each in graph.outputs:
            _ask(each)
        return original(name, graph, *arguments, **options)

    atomic_function.from_func_graph = from_func_graph


def _ask(tensor: Any) -> None:
    found = getattr(tensor, _MARK, None)
    if found is not None and not _thread.expected:
        found.ask()
