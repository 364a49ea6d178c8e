"""Where the records of a training chain are sharded over the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import libcst as cst

from ...catalogue import BATCHING, STAGES
from ..program import Problem, argument
from .chains import Chain, Link, draws, drops_remainder

IsNumber: TypeAlias = Callable[[cst.BaseExpression], bool]


@dataclass(frozen=True)
class ShardPoint:
    """Where the records of one chain are sharded over the ranks, and the shuffles that all ranks must then draw alike.

    Those before sharding, for which there is an order check, and those of batches after it.
    """

    node: cst.BaseExpression
    position: int
    shuffles: tuple[cst.Call, ...]
    order_check: bool


def find_shard_point(chain: Chain, shared: frozenset[cst.BaseExpression], is_number: IsNumber) -> ShardPoint | Problem:
    """Where the records are sharded: as early as possible, but after a leading repeat and after every stage whose
    number of outputs depends on content (shared semantics, rule 2).

    `shared` holds the expressions of the chain that other code reads too: sharding must not change what it sees.
    `is_number` tells whether a name certainly stands for a whole number that is written out.
    """
    if chain.batched_source and not chain.calls("unbatch"):
        reason = "the records reach this point in batches, and tfdp shards records, not batches"
        next_step = "build the dataset from single records (batch_size=None, where it has one) and batch it afterwards"
        return Problem("TFDP010", chain.source, reason, next_step)
    if (unknown := _of_several(chain)) is not None:
        return unknown
    position, batched = _after_repeats(chain), False
    for i, (link, of_batches) in enumerate(chain.stages, 1):
        facts = STAGES.get(link.stage or "")
        if facts is None or link.stage == "shard":
            reason = f"the records cannot be sharded safely in a dataset with .{link.stage}()"
            by_hand = "shard the records by hand with dp.shard(…)"
            next_step = f"{by_hand}, or write the stage with map, shuffle, batch and the like"
            return Problem("TFDP010", link.call, reason, next_step)
        if link.stage in BATCHING and of_batches:
            batched = True
        elif link.stage in {"take", "enumerate"} and batched:
            continue  # `take` counts steps: TFDP011; `enumerate` numbers them
        elif facts.counts or link.stage in BATCHING:
            if batched and link.stage != "unbatch":
                reason = f".{link.stage}() counts batches, which hold other examples on each worker"
                return Problem("TFDP010", link.call, reason, f"put .{link.stage}() before .batch()")
            batched, position = False, i
    if chain.links[position].stage == "window":
        reason = "the records are windows, which are datasets"
        return Problem("TFDP010", chain.source, reason, "put .flat_map(…) after it")
    if not batched:
        reason = "the training dataset is never batched in this file, and tfdp shards records, not batches"
        return Problem("TFDP010", chain.source, reason, "make it of single records, and add .batch(…) to the dataset")
    if (padded := _padded_to_longest(chain, is_number)) is None:
        return _place(chain, position, shared)
    reason = "this pads each batch to its longest record, and the longest differs by worker"
    return Problem("TFDP010", padded, reason, "give padded_shapes= with the lengths written out")


def _of_several(chain: Chain) -> Problem | None:
    if chain.one_of_several is None:
        return None
    reason = "several instances of this class hold datasets; cannot tell which holds the training data"
    return Problem("TFDP010", chain.one_of_several, reason, "keep the training dataset in a variable of its own")


def _after_repeats(chain: Chain) -> int:
    return next((i for i, link in enumerate(chain.links[1:]) if link.stage != "repeat"), len(chain.links) - 1)


def _padded_to_longest(chain: Chain, is_number: IsNumber) -> cst.Call | None:
    """The first call that pads batches of the chain to a length that only their records tell."""
    shapes = ((c, argument(c, "padded_shapes", 1)) for c in chain.calls("padded_batch"))
    return next((c for c, given in shapes if given is None or not _is_fixed(given.value, is_number)), None)


def _place(chain: Chain, position: int, shared: frozenset[cst.BaseExpression]) -> ShardPoint | Problem:
    before = replace(chain, links=chain.links[: position + 1])
    if (outside := _read_outside(chain.links[position + 1 :], shared)) is not None:
        return outside
    every = chain.links[position].nodes
    nodes = [n for n in every if n not in shared]
    if not nodes and every:
        reason = "the training dataset is made together with others, which have to stay whole"
        next_step = "make the training dataset, or at least its .batch(…), outside the function that makes the others"
        return Problem("TFDP010", every[-1], reason, next_step)
    if not nodes:
        reason = "the dataset comes out of a structure in one piece with others"
        return Problem("TFDP010", chain.source, reason, "give the training dataset a name of its own")
    shuffles = draws(before)
    check = bool(shuffles) or chain.generated or bool(before.calls("apply", "rejection_resample"))
    return ShardPoint(nodes[0], position, tuple(dict.fromkeys([*shuffles, *_of_unequal(chain, position)])), check)


def _read_outside(links: Iterable[Link], shared: frozenset[cst.BaseExpression]) -> Problem | None:
    read = next((n for link in links for n in link.nodes if n in shared), None)
    if read is None:
        return None
    reason = "this dataset is used outside the training loop too, where it would hold only one worker's share"
    next_step = "make a second dataset for the other use, from the records before the batch"
    return Problem("TFDP010", read, reason, next_step)


def _of_unequal(chain: Chain, position: int) -> list[cst.Call]:
    """Shuffles of batches after sharding: ranks that differ in where a short last batch comes would each give its
    examples the weight of a full batch's."""
    made = next((i for i, link in enumerate(chain.links) if link.call in chain.batches), 0)
    if not made and not chain.batched_source:
        return []
    if made and drops_remainder(chain.links[made].call):
        return []
    return replace(chain, links=chain.links[max(made, position) + 1 :]).calls("shuffle")


def _is_fixed(shape: cst.BaseExpression, is_number: IsNumber) -> bool:
    """Whether the lengths to which records are padded are numbers."""
    if isinstance(shape, cst.List | cst.Tuple):
        return all(_is_fixed(e.value, is_number) for e in shape.elements)
    return isinstance(shape, cst.Integer) or (isinstance(shape, cst.Name) and is_number(shape))
