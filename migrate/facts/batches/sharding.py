"""Where all training data of a script are sharded: those of its loops, and those that models are fitted to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import libcst as cst

from ..data import Chain, ShardPoint, Sharing, find_shard_point
from ..keras import FitData
from ..program import Problem


@dataclass(frozen=True)
class ShardPlan:
    """The places, what stands in the way, and the chains in which they are sharded."""

    shard_points: tuple[ShardPoint, ...]
    problems: tuple[Problem, ...]
    chains: tuple[Chain, ...]


def shard_plan(sharing: Sharing, looped: Iterable[Chain], fits: Iterable[FitData]) -> ShardPlan:
    """`looped` are the chains of the training loops, `fits` the data of Keras' fit."""
    fits = tuple(fits)
    chains = tuple(dict.fromkeys([*looped, *(c for f in fits for c in f.chains)]))
    shared = sharing.read_by_others(chains)
    found = [find_shard_point(c, shared, sharing.is_number) for c in chains if c.sharded is None]
    problems = [p for p in found if isinstance(p, Problem)]
    reason, next_step = "what gives these batches is not asked for larger ones", "make a tf.data dataset of the records"
    given = (f for f in fits if f.batches is not None and not f.sharded)
    problems += [Problem("TFDP010", f.data, reason, next_step) for f in given]
    by_place: dict[cst.BaseExpression, ShardPoint] = {}
    for point in (p for p in found if isinstance(p, ShardPoint)):  # a helper may shard several datasets at one place
        known = by_place.get(point.node, point)
        shuffles = tuple(dict.fromkeys([*known.shuffles, *point.shuffles]))
        checked = known.order_check or point.order_check
        by_place[point.node] = replace(point, shuffles=shuffles, order_check=checked)
    problems = problems or _twice(chains, set(by_place))
    return ShardPlan(tuple(by_place.values()), tuple(dict.fromkeys(problems)), chains)


def _twice(chains: Iterable[Chain], wrapped: set[cst.BaseExpression]) -> list[Problem]:
    reason = "on some paths through the script the records would be sharded twice"
    twice = [c for c in chains if c.sharded is None and sum(n in wrapped for n in c.nodes) > 1]
    return [Problem("TFDP010", c.source, reason, "build each training dataset in one chain") for c in twice]
