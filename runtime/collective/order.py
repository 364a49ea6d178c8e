"""The order of exchanges that are built into graphs: the same on all ranks."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..transports import Tensor, waiting_for

_LAST = "_tfdp_exchanged_last"  # of a graph: what its last exchange gave, of those that were kept in order
_INSIDE = "_tfdp_exchanges_inside"  # of a graph: whether there are any, in functions of it too
_WITHIN = "_tfdp_exchanges_within"  # of a graph: whether there are any in functions of it
_WRAPPER = "cflow_gradient_wrapper"  # the graph around those that a tape records
# What TensorFlow calls the graphs of branches and loops. Those of their gradients begin with "_".
_PARTS = ("CondBranchFuncGraph", "WhileBodyFuncGraph", "WhileCondFuncGraph")


def in_order(exchange: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
    """What an exchange gives; in a graph it comes after those that were made there so before.

    TensorFlow keeps stateful operations in the order of a function's text, but not those of the gradients of one that a
    tape outside has recorded: these are made in the same order on all ranks, and would run in any. Nor does what is in
    a loop or branch wait for what is before it, unless it needs it.
    """
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    with tf.control_dependencies(getattr(graph, _LAST, ())), waiting_for(_outside(graph)):
        found = list(exchange())
    if graph is not None:
        setattr(graph, _LAST, tuple(found))
    while graph is not None:
        setattr(graph, _INSIDE, True)
        graph = getattr(graph, "outer_graph", None)
        if graph is not None:
            setattr(graph, _WITHIN, True)
    return found


def _outside(graph: Any) -> Sequence[Tensor]:
    """What a loop's or branch's first exchange waits for."""
    if graph is None or hasattr(graph, _LAST):
        return ()
    while type(graph).__name__ in _PARTS or _WRAPPER in getattr(graph, "name", ""):
        graph = graph.outer_graph
        found = getattr(graph, _LAST, ())
        if found:
            with graph.as_default():
                return [first(found[0])]
    return ()


def first(tensor: Tensor) -> Tensor:
    """The first element, shape `[1]`, or none, shape `[0]`: enough to wait for."""
    return tf.reshape(tensor, [-1])[:1]


def has_inner_exchanges() -> bool:
    """Whether loops, branches or functions in the graph that is built make exchanges."""
    return not tf.executing_eagerly() and hasattr(tf.compat.v1.get_default_graph(), _WITHIN)


def keep_loops_in_order() -> None:
    """From now on a loop with exchanges takes one turn after the other, of which TensorFlow may otherwise take ten at a
    time. Nothing public tells what is in a loop that a function has written as Python."""
    from tensorflow.python.ops import while_v2

    original = while_v2._build_while_op

    @functools.wraps(original)
    def build(loop_vars: Any, cond_graph: Any, body_graph: Any, *arguments: Any, **options: Any) -> Any:
        if any(getattr(each, _INSIDE, False) for each in (cond_graph, body_graph)):
            options["parallel_iterations"] = 1
        return original(loop_vars, cond_graph, body_graph, *arguments, **options)

    while_v2._build_while_op = build
