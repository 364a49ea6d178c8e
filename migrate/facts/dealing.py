"""Where all training data of a script are dealt: those of its loops, and those that models are fitted to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from tfdp.migrate.facts.datasets import Chain, draws
from tfdp.migrate.facts.deals import Deal, find_batch_deal, find_deal
from tfdp.migrate.facts.fit_data import FitData
from tfdp.migrate.facts.problem import Problem
from tfdp.migrate.facts.sharing import Sharing


@dataclass(frozen=True)
class Dealing:
    """The places, what stands in the way, and the chains in which the deal is made.

    A dataset that `fit` is given and in whose chain no place is right is dealt by whole batches where it is given.
    """

    deals: tuple[Deal, ...]
    problems: tuple[Problem, ...]
    chains: tuple[Chain, ...]


def dealing(sharing: Sharing, looped: Iterable[Chain], fits: Iterable[FitData]) -> Dealing:
    """`looped` are the chains of the training loops, `fits` the data of Keras' fit."""
    looped, fits = tuple(looped), tuple(fits)
    inside = [f for f in fits if f.chains and not f.dealt]
    while True:
        chains = tuple(dict.fromkeys([*looped, *(c for f in inside for c in f.chains)]))
        shared = sharing.read_by_others(chains)
        found = {c: _find(c, sharing, shared, c not in looped) for c in chains if c.dealt is None}
        left = [f for f in inside if any(isinstance(found.get(c), Problem) for c in f.chains)]
        if not left:
            break
        inside = [f for f in inside if f not in left]
    whole = [f for f in fits if not f.dealt and f not in inside and (f.chains or f.batches is not None)]
    deals = [d for d in found.values() if isinstance(d, Deal)] + [_at_fit(f) for f in whole]
    problems = [p for p in found.values() if isinstance(p, Problem)]
    problems += [p for f in whole if (p := sharing.drawn_before(f.chains)) is not None]
    if not problems:
        problems = _twice([*chains, *(c for f in whole for c in f.chains)], {d.node for d in deals})
    dealt = [c for f in fits if f.dealt for c in f.chains]
    by_place = {d.node: d for d in deals}
    return Dealing(tuple(by_place.values()), tuple(dict.fromkeys(problems)), tuple(dict.fromkeys([*chains, *dealt])))


def _find(chain: Chain, sharing: Sharing, shared: frozenset[cst.BaseExpression], fitted: bool) -> Deal | Problem:
    found = find_deal(chain, shared)
    if isinstance(found, Problem) and fitted and chain.batched_source:
        found = find_batch_deal(chain, shared)
        if isinstance(found, Deal) and sharing.measured(chain, found.node):
            reason = "the length of this dataset is asked for, which is not known after a deal of batches"
            return Problem("TFDP010", found.node, reason, "deal the batches where they are used")
    return found


def _at_fit(fit: FitData) -> Deal:
    shuffles = tuple(dict.fromkeys([*fit.drawn, *(call for chain in fit.chains for call in draws(chain))]))
    return Deal(fit.data, 0, shuffles, order_check=True, batches=True)


def _twice(chains: Iterable[Chain], wrapped: set[cst.BaseExpression]) -> list[Problem]:
    found = []
    for chain in chains:
        times = sum(n in wrapped for link in chain.links for n in link.nodes)
        source = chain.links[0].call
        if chain.dealt is None and times > 1 and source is not None:
            reason = "on some ways through the script the records would be dealt twice"
            found.append(Problem("TFDP010", source, reason, "build each training dataset in one chain"))
    return found
