"""Decisions on the way to a step and to its update that may differ by worker."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..program import Origins, Problem, closure, exits_before, within
from ..training import TrainingLoop, loop_exits
from .values import Sameness


def local_decisions(origins: Origins, loop: TrainingLoop, sameness: Sameness) -> list[Problem]:
    """Conditions around a step or its update, and exits before them, that may differ by worker."""
    steps = [t for node in loop.calls for t in _tests(origins, node, loop, sameness)]
    # From an update back to the training loop's own body.
    ways = closure(
        [u.call for u in loop.gradient.updates],
        lambda node: () if within(origins.index, node, loop.loop.body) else origins.calls_into(node),
    )
    updates = [t for node in ways for t in _tests(origins, node, loop, sameness)]
    found = [(test, "a step is taken") for test in dict.fromkeys(steps)]
    found += [(test, "an update is applied") for test in dict.fromkeys(updates) if test not in steps]
    return [
        Problem(
            "TFDP030",
            test,
            f"whether {what} depends on something that may differ by worker: each has other examples",
            "take the step on every worker, or decide by something that all workers share",
        )
        for test, what in found
    ]


def _tests(origins: Origins, node: cst.CSTNode, loop: TrainingLoop, sameness: Sameness) -> Iterator[cst.CSTNode]:
    """What decides, in the node's own function, whether it is reached."""
    if (test := sameness.differing(node)) is not None:
        yield test
    for exit_ in exits_before(node, origins):
        leaves = exit_ in loop_exits(loop)  # refused for itself, whatever decides it
        if not leaves and (test := sameness.differing(exit_)) is not None:
            yield test
