"""Code of the script's own that runs eagerly: each call is built into a graph, once, and this is executed.

Python runs as often as ever, but sees neither numbers nor lengths. A graph that is the same as that of an earlier call
is not compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from ..foundation import gist
from . import carried, sight
from .kept_with import kept_with
from .observed import refuse_recorded

_LONGEST = 200  # of the text of an error
_KEPT = 8  # graphs of one function or layer
# What TensorFlow raises where code asks a graph for what only a value has.
NO_GRAPH = (AttributeError, NotImplementedError, TypeError, ValueError)


class _Built(NamedTuple):
    """A graph: its text, the variables that tapes are told of when it is run, and what runs it."""

    text: bytes
    variables: tuple[int, ...]
    run: Any


def in_a_graph(owner: Any, call: Callable[..., Any], arguments: Any, options: Any) -> Any:
    """`call(arguments, options)`, built into a graph and executed. The thread has a sight, and rows.

    owner: for what graphs are kept.
    """
    try:
        concrete, results, passed = build(call, arguments, options)
    except NO_GRAPH as error:
        sight.now().refuse(no_graph(error))  # type: ignore[union-attr]
        raise
    refuse_recorded(concrete.captured_inputs, sight.now().refuse)  # type: ignore[union-attr]
    given = [each for each in tf.nest.flatten((arguments, options)) if isinstance(each, tf.Tensor)]
    found = _known(owner, concrete)(*carried.taken_apart(given))
    flat = tf.nest.flatten(results)
    tensors = [each for each in flat if isinstance(each, tf.Tensor)]
    for each, outside in zip(tensors, carried.put_together(tensors, found), strict=True):
        passed.setdefault(id(each), outside)  # what is given as it was given, or twice, is one tensor
    return tf.nest.pack_sequence_as(results, [passed.get(id(each), each) for each in flat])


def no_graph(error: BaseException | None) -> str:
    """What is said of code of which no graph can be built."""
    return f"cannot be built into a graph of rows of unknown number ({said_by(error)})"


def said_by(error: BaseException | None) -> str:
    """What an error says, in one line."""
    return gist(f"{type(error).__name__}: {error}")[:_LONGEST]


def build(call: Callable[..., Any], arguments: Any, options: Any) -> tuple[Any, Any, dict[int, Any]]:
    """A graph of `call(arguments, options)`, with its results there, and what tensors in it stand for. The thread has a
    sight, and rows."""
    here, rows = sight.now(), {id(each) for each in sight.rows()}
    structure = arguments, options
    leaves = tf.nest.flatten(structure)
    given = [each for each in leaves if isinstance(each, tf.Tensor)]
    results: list[Any] = []
    passed: dict[int, Any] = {}

    def built(*tensors: Any) -> Any:
        found = dict(zip(map(id, given), carried.put_together(given, tensors), strict=True))
        passed.update((id(found[id(each)]), each) for each in given)
        inside = tf.nest.pack_sequence_as(structure, [found.get(id(each), each) for each in leaves])
        with sight.seen(here, [found[key] for key in found if key in rows]):
            results.append(call(*inside))
        return carried.taken_apart([each for each in tf.nest.flatten(results[-1]) if isinstance(each, tf.Tensor)])

    specs = [
        tf.TensorSpec([None, *each.shape[1:]] if id(whole) in rows else each.shape, each.dtype)
        for whole in given
        for each in carried.taken_apart([whole])
    ]
    return tf.function(built, autograph=False).get_concrete_function(*specs), results[-1], passed


def _known(owner: Any, concrete: Any) -> Any:
    """The function, or the same one of an earlier call."""
    text = concrete.graph.as_graph_def().SerializeToString(deterministic=True)
    variables = tuple(map(id, concrete.graph.variables))
    kept: list[_Built] = kept_with(owner, "graphs", [])
    for each in kept:
        same = (each.text, each.variables) == (text, variables)
        if same and len(each.run.captured_inputs) == len(concrete.captured_inputs):
            each.run.set_external_captures(concrete.captured_inputs)
            return each.run
    kept.append(_Built(text, variables, concrete))
    del kept[:-_KEPT]
    return concrete
