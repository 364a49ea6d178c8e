"""Each rank's rows of batches that a script takes from arrays, with numbers that all ranks draw alike."""

from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from ..foundation import TfdpError, Topology, call_site, say_once
from ..framework import as_written
from ..job import current, widened_by
from .datasets import even, whole_number
from .order import Log
from .rows import digest, leaves, length, mapped, sliced

_EVERY = 64
_logs: dict[str, "_BatchLog"] = {}
_batches_of_all: set[int] = set()


class _BatchLog(Log):
    """The running hash of one place's batches, which is compared after 1, 2, 4, … and every 64 of them.

    Running, because permutations of generators that are out of step fall into step again by chance (tried).
    """

    def __init__(self, site: str) -> None:
        super().__init__(current(), site, f"rows/{site}")
        self._count, self._running = 0, 0

    def see(self, parts: list[Any]) -> None:
        self._count += 1
        self._running = digest(self._running, parts)
        if self._count & (self._count - 1) == 0 or self._count % _EVERY == 0:
            self.check(0, self._count, self._running)

    def refuse(self, passed: int, count: int, rank: int) -> None:  # noqa: ARG002
        mine = current().topology.rank
        raise TfdpError(
            f"one of the first {count} batches at {self.site} differs between rank {mine} and rank {rank}: "
            "dp.local_rows shards the rows of one batch, which all ranks must take alike. Draw permutations and "
            "indices from a generator seeded alike on all ranks, and let no rank draw alone"
        )


@as_written
def local_rows(batch: Any) -> Any:
    """This rank's rows of a batch that every rank has taken alike: row `i` goes to rank `i mod N`.

    The last `m mod N` of a batch's m rows are left out, so that all ranks get equally many, and that is said once on
    stderr. Outside `tf.function`s the batches are compared over the ranks, now and then.

    Args:
        batch: an array, tensor, data frame or list, whose first axis are the rows; or a tuple or dictionary of such,
            with equally many rows; None stays None.

    Returns:
        The same structure with `m // N` rows; with one worker the batch itself.

    Raises:
        TypeError: a part has no rows.
        ValueError: the parts have different numbers of rows; fewer rows than ranks.
        TfdpError: the ranks' batches differ.
    """
    topology = current().topology
    if topology.size == 1:
        return batch
    parts = leaves(batch, lists=False)
    rows = _rows(parts)
    if not tf.is_tensor(rows):
        if rows < topology.size:
            raise ValueError(f"a batch of {rows} row(s) at {call_site()} cannot be sharded over {topology.size} ranks")
        if rows % topology.size:
            _say(topology)
    if tf.executing_eagerly():
        site = call_site()
        if site not in _logs:
            _logs[site] = _BatchLog(site)
        _logs[site].see(parts)
    mine = slice(topology.rank, rows - rows % topology.size, topology.size)
    return mapped(batch, lambda part: sliced(part, mine), lists=False)


@as_written
def local_batches(batches: Iterable[Any]) -> Iterable[Any]:
    """This rank's rows of every batch of an iterable: `for x, y in dp.local_batches(batches(…))`.

    Batches with fewer rows than ranks are left out. See `local_rows`; with one worker the iterable itself.
    """
    topology = current().topology
    return batches if topology.size == 1 else _each(batches, topology)


def _each(batches: Iterable[Any], topology: Topology) -> Iterator[Any]:
    for batch in batches:
        if _rows(leaves(batch, lists=False)) >= topology.size:
            yield local_rows(batch)
        else:
            _say(topology)


@as_written
def global_batch_size(batch_size: Any, *, only_if: bool = True) -> Any:
    """The batch of all ranks together, where each has `batch_size` of it: `batch_size * N`.

    Args:
        batch_size: the number of examples that each rank has; an int, or a tensor as `tf.shape(x)[0]` gives it.
        only_if: False returns it as it is: for functions that make training data and others.

    Raises:
        TypeError: it is not an integer.
    """
    size = widened_by()
    if size == 1 or not only_if:
        return batch_size
    if tf.is_tensor(batch_size):
        return batch_size * size
    found = whole_number("the batch size", batch_size) * size
    _batches_of_all.add(found)
    return found


def batches_of_all() -> frozenset[int]:
    """The batches of all ranks that `global_batch_size` has given, where it was asked for a number."""
    return frozenset(_batches_of_all)


@as_written
def even_batch_size(batch_size: int, *, only_if: bool = True) -> int:
    """The batch size itself, of which every rank gets an equal part.

    Args:
        batch_size: the number of examples in a batch of all ranks.
        only_if: False asks nothing of it: for functions that make training data and others.

    Raises:
        TypeError: it is not an integer.
        ValueError: the number of ranks does not divide it.
    """
    if only_if:
        even(batch_size)
    return batch_size


@as_written
def sharded_length(records: int) -> int:
    """How many of `records` all ranks together get in a pass: without the last `n mod N`. Said once on stderr.

    Raises:
        TypeError: it is not an integer.
    """
    topology = current().topology
    if topology.size == 1:
        return records
    count = whole_number("the number of records", records)
    if count % topology.size:
        _say(topology)
    return count - count % topology.size


def _say(topology: Topology) -> None:
    if topology.rank == 0:
        say_once(
            f"{call_site()}: up to {topology.size - 1} rows at the end of a pass are left out, should they not divide"
        )


def _rows(parts: list[Any]) -> Any:
    """The number of rows that all parts have: an int, or a scalar tensor in a graph that does not know it yet."""
    found = [length(part) for part in parts]
    known = {rows for rows in found if not tf.is_tensor(rows)}
    if len(known) > 1 or not found:
        raise ValueError(f"the parts of the batch at {call_site()} have {sorted(known)} rows: equally many are needed")
    return known.pop() if known else found[0]
