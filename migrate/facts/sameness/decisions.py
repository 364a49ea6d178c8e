"""Decisions on the way to a step and to its update that may differ by worker."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import libcst as cst

from ..program import Origins, Problem, closure, exits_before, nodes, within
from ..training import TrainingLoop, loop_exits
from .marks import Mark
from .values import Sameness


def local_decisions(origins: Origins, loop: TrainingLoop, sameness: Sameness) -> list[Problem]:
    """What decides, around a step or its update or before them, whether and how often each worker comes to them."""
    # From an update back to the training loop's own body.
    ways = closure(
        [u.call for u in loop.gradient.updates],
        lambda node: () if within(origins.index, node, loop.loop.body) else origins.calls_into(node),
    )
    steps = list(dict.fromkeys(t for node in loop.calls for t in _tests(origins, node, loop, sameness)))
    updates = [t for node in ways for t in _tests(origins, node, loop, sameness) if t not in steps]
    places = [*loop.calls, *ways]
    return [
        *(_decided(test, "a step is taken") for test in steps),
        *(_decided(test, "an update is applied") for test in dict.fromkeys(updates)),
        *(_raised(call) for call in dict.fromkeys(_raising(origins, places, loop, sameness))),
        *(_turning(node) for node in dict.fromkeys(_choosing(origins, places, sameness))),
    ]


def _decided(test: cst.CSTNode, what: str) -> Problem:
    reason = f"whether {what} depends on something that may differ by worker: each has other examples"
    next_step = "take the step on every worker, or decide by something that all workers share"
    return Problem("TFDP030", test, reason, next_step)


def _raised(call: cst.CSTNode) -> Problem:
    reason = (
        "this may raise an exception on one worker alone, by its examples, after which training goes on: that worker "
        "would take one step less, and the others would average their gradients with those of its next batch"
    )
    next_step = "let the exception end the script, or choose the examples before training, by dataset.filter"
    return Problem("TFDP030", call, reason, next_step)


def _turning(node: cst.CSTNode) -> Problem:
    reason = "how many steps are taken, or on which data, depends on values of this worker's examples"
    next_step = (
        "take a number of steps that all workers share: average the value first, as dp.average_value(value) does"
    )
    return Problem("TFDP030", node, reason, next_step)


def _tests(origins: Origins, node: cst.CSTNode, loop: TrainingLoop, sameness: Sameness) -> Iterator[cst.CSTNode]:
    """What decides, in the node's own function, whether it is reached."""
    for place in _until(origins, node, loop):
        if (test := sameness.differing(place)) is not None:
            yield test


def _until(origins: Origins, node: cst.CSTNode, loop: TrainingLoop) -> list[cst.CSTNode]:
    """The node, and what leaves its function or a turn of a loop before it; the ends of training are asked apart."""
    return [node, *(e for e in exits_before(node, origins) if e not in loop_exits(loop))]


def _raising(
    origins: Origins, places: Iterable[cst.CSTNode], loop: TrainingLoop, sameness: Sameness
) -> Iterator[cst.CSTNode]:
    """Where an exception on one worker alone would keep it from a place; the first call before each."""
    for node in places:
        for place in _until(origins, node, loop):
            found = (call for call in sameness.raising(place) if _goes_on(origins, call, loop))
            yield from itertools.islice(found, 1)


def _goes_on(origins: Origins, call: cst.CSTNode, loop: TrainingLoop) -> bool:
    """Whether training goes on after an exception: what ends it on one worker alone, the others tell."""
    index = origins.index
    inside = any(within(index, call, around.body) for around in (loop.loop, *loop.outer))
    return inside or index.enclosing_function(call) is not index.enclosing_function(loop.loop)


def _choosing(origins: Origins, places: Iterable[cst.CSTNode], sameness: Sameness) -> Iterator[cst.CSTNode]:
    """What says, by this worker's examples, how often a loop around a step turns, or over which data."""
    for loop in dict.fromkeys(around for place in places for around in origins.index.loops_around(place)):
        if not isinstance(loop, cst.For):
            continue
        if Mark.LOCAL in sameness.length(loop.iter):
            yield loop.iter
        for node in nodes(loop.iter):
            if isinstance(node, cst.IfExp) and Mark.LOCAL in sameness.of(node.test):
                yield node.test
            elif isinstance(node, cst.Subscript):
                yield from (element for element in node.slice if Mark.LOCAL in sameness.of(element))
