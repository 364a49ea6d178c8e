"""Where all training data of a script are sharded: those of its loops, and those that models are fitted to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import libcst as cst

from ..data import Chain, ShardPoint, Sharing, draws, find_batch_shard_point, find_shard_point, of_lengths, of_padded
from ..keras import FitData
from ..program import Problem


@dataclass(frozen=True)
class ShardPlan:
    """The places, what stands in the way, and the chains in which they are sharded.

    A dataset that `fit` is given and in whose chain no place is right is sharded by whole batches where it is given:
    `of_many_lengths` has those of which a step's are no batch of one process.
    """

    shard_points: tuple[ShardPoint, ...]
    problems: tuple[Problem, ...]
    chains: tuple[Chain, ...]
    of_many_lengths: tuple[Problem, ...]

    @property
    def starred(self) -> tuple[Problem, ...]:
        """Batches whose size is hidden, where it has to be changed."""
        calls = dict.fromkeys(call for c in self.chains for call in c.batches if any(a.star for a in call.args))
        reason = "the batch size is hidden by a starred argument"
        return tuple(Problem("TFDP010", call, reason, "write batch_size=… out") for call in calls)

    def problems_of(self, batch: str) -> tuple[Problem, ...]:
        """What cannot be sharded in a batch mode alone."""
        return self.of_many_lengths if batch == "per-worker" else (*self.starred, *self._of_unknown_size)

    @property
    def _of_unknown_size(self) -> tuple[Problem, ...]:
        """Batches of code that is not followed, where their size has to be split wherever it is used."""
        made = [c.source for c in self.chains if c.foreign and c.batched_source]
        reason = "the code that makes these batches is not followed, nor is their size, which the workers would share"
        next_step = "use --batch per-worker, or make the batches in this file"
        return tuple(Problem("TFDP010", call, reason, next_step) for call in made)

    @property
    def common_batches(self) -> tuple[cst.Call, ...]:
        """The calls that make batches of which each rank takes its rows."""
        sharded = {d.node for d in self.shard_points if d.rows}
        chains = (c for c in self.chains if not sharded.isdisjoint(c.nodes))
        return tuple(dict.fromkeys(call for c in chains for call in c.batches))


def shard_plan(sharing: Sharing, looped: Iterable[Chain], fits: Iterable[FitData]) -> ShardPlan:
    """`looped` are the chains of the training loops, `fits` the data of Keras' fit."""
    looped, fits = tuple(looped), tuple(fits)
    inside = [f for f in fits if f.chains and not f.sharded]
    while True:
        chains = tuple(dict.fromkeys([*looped, *(c for f in inside for c in f.chains)]))
        shared = sharing.read_by_others(chains)
        found = {c: _find(c, sharing, shared) for c in chains if c.sharded is None}
        left = [f for f in inside if any(isinstance(found.get(c), Problem) for c in f.chains)]
        if not left:
            break
        inside = [f for f in inside if f not in left]
    whole = [f for f in fits if not f.sharded and f not in inside and (f.chains or f.batches is not None)]
    shard_points = [d for d in found.values() if isinstance(d, ShardPoint)] + [_at_fit(f) for f in whole]
    problems = [p for p in found.values() if isinstance(p, Problem)]
    problems += [p for f in whole if (p := sharing.drawn_before(f.chains)) is not None]
    if not problems:
        problems = _twice([*chains, *(c for f in whole for c in f.chains)], {d.node for d in shard_points})
    sharded = [c for f in fits if f.sharded for c in f.chains]
    by_place: dict[cst.BaseExpression, ShardPoint] = {}
    for point in shard_points:  # a helper may shard several datasets at one place
        known = by_place.get(point.node, point)
        shuffles = tuple(dict.fromkeys([*known.shuffles, *point.shuffles]))
        checked = known.order_check or point.order_check
        by_place[point.node] = replace(point, shuffles=shuffles, order_check=checked)
    lengths = dict.fromkeys(of_lengths(c, sharing.is_number) for f in whole for c in f.chains)
    every = tuple(dict.fromkeys([*chains, *sharded]))
    of_many = tuple(p for p in lengths if p is not None)
    return ShardPlan(tuple(by_place.values()), tuple(dict.fromkeys(problems)), every, of_many)


def _find(chain: Chain, sharing: Sharing, shared: frozenset[cst.BaseExpression]) -> ShardPoint | Problem:
    found = find_shard_point(chain, shared, sharing.is_number)
    if isinstance(found, ShardPoint) and found.rows:
        (padded,) = chain.batches
        drawn = sharing.drawn_before([chain])
        return of_padded(padded) if drawn is not None or sharing.measured(chain, padded) else found
    if isinstance(found, Problem) and chain.batched_source:
        found = find_batch_shard_point(chain, shared)
        if isinstance(found, ShardPoint) and sharing.measured(chain, found.node):
            reason = "the length of this dataset is asked for, which is not known after its batches are sharded"
            return Problem("TFDP010", found.node, reason, "shard the batches where they are used")
    return found


def _at_fit(fit: FitData) -> ShardPoint:
    shuffles = tuple(dict.fromkeys([*fit.drawn, *(call for chain in fit.chains for call in draws(chain))]))
    return ShardPoint(fit.data, 0, shuffles, order_check=True, batches=True)


def _twice(chains: Iterable[Chain], wrapped: set[cst.BaseExpression]) -> list[Problem]:
    reason = "on some paths through the script the records would be sharded twice"
    twice = [c for c in chains if c.sharded is None and sum(n in wrapped for n in c.nodes) > 1]
    return [Problem("TFDP010", c.source, reason, "build each training dataset in one chain") for c in twice]
