"""Each rank's rows of whole arrays: what `fit` takes as `x`, `y` and `sample_weight`."""

import math
import numbers
from typing import Any

import tensorflow as tf

from ..foundation import TfdpError, Topology, call_site, say_once
from ..framework import as_written
from ..job import current
from .order import differing_ranks
from .rows import digest, leaves, length, mapped, sliced


def is_batched_source(data: Any) -> bool:
    """Whether it yields batches: a generator, an iterator, a `Sequence` or `PyDataset`."""
    return hasattr(data, "__next__") or any(cls.__name__ in ("PyDataset", "Sequence") for cls in type(data).__mro__)


def sharded_arrays(data: Any, validation_split: float, source_check: bool) -> Any:
    """This rank's rows `r::N` of the first `n - n % N` of each array; see `dp.shard`."""
    topology = current().topology
    if validation_split:
        data = _each(data, slice(_split_at(data, validation_split)))
    if topology.size == 1:
        return data
    parts = leaves(data, lists=True)
    if not parts:
        return data
    rows = _equal_length(parts)
    if source_check and tf.executing_eagerly():
        _check_same_arrays(parts, rows)
    if rows < topology.size:
        raise ValueError(f"{rows} row(s) at {call_site()} cannot be sharded over {topology.size} ranks")
    end = rows - rows % topology.size
    if end < rows:
        _say(topology, rows)
    return _each(data, slice(topology.rank, end, topology.size))


@as_written
def held_out(data: Any, validation_split: float) -> Any:
    """The rows that Keras holds out for validation: the last ones, whole on every rank.

    `fit(x, y, validation_split=0.2)` becomes `fit(dp.shard(x, validation_split=0.2), dp.shard(y, validation_split=0.2),
    validation_data=(dp.held_out(x, 0.2), dp.held_out(y, 0.2)))`.

    Args:
        data: an array, tensor or data frame, or a tuple, list or dictionary of such; None stays None.
        validation_split: which part of the rows is held out, greater than 0 and less than 1.

    Raises:
        ValueError: another split, or one that leaves no row on one side.
    """
    return _each(data, slice(_split_at(data, validation_split), None))


def _split_at(data: Any, validation_split: float) -> int:
    """Where Keras cuts: it rounds the length of the first part down."""
    if not isinstance(validation_split, numbers.Real) or not 0 < validation_split < 1:
        raise ValueError(f"validation_split is {validation_split!r} at {call_site()}: greater than 0, less than 1")
    parts = leaves(data, lists=True)
    if not parts:
        return 0
    rows = _equal_length(parts)
    cut = math.floor(rows * (1.0 - validation_split))
    if cut in (0, rows):
        raise ValueError(f"validation_split={validation_split} of {rows} row(s) at {call_site()} leaves one side empty")
    return cut


def _each(data: Any, rows: slice) -> Any:
    return mapped(data, lambda part: sliced(part, rows), lists=True)


def local_part(batch: Any, topology: Topology) -> Any:
    """Rows `r::N` of each part of a batch, without the last `m mod N`."""
    rows = _equal_length(leaves(batch, lists=True))
    end = rows - rows % topology.size
    return _each(batch, slice(topology.rank, end, topology.size))


def _equal_length(parts: list[Any]) -> int:
    for part in parts:
        if is_batched_source(part):
            raise TypeError(
                f"dp.shard at {call_site()} takes arrays and tf.data.Datasets, and this {type(part).__name__} yields "
                "batches: use dp.shard_batches"
            )
    found = {int(length(part)) for part in parts}
    if len(found) != 1:
        raise ValueError(f"the arrays at {call_site()} have {sorted(found)} rows: equally many are needed")
    return found.pop()


def _check_same_arrays(parts: list[Any], rows: int) -> None:
    """Compare number, shape and content of the rows over the ranks. Every rank calls it."""
    said = f"{rows}".encode() + digest(0, parts, whole=True).to_bytes(8, "little")
    others = differing_ranks(said, "arrays of dp.shard")
    if others:
        raise TfdpError(
            f"the arrays given to dp.shard at {call_site()} differ on rank(s) {others} from rank 0's: "
            "each rank must hold the same rows in the same order. Draw splits and permutations from a generator seeded "
            "alike on all ranks (dp.shuffle_seed()), or, if they differ on purpose, say dp.shard(…, source_check=False)"
        )


def _say(topology: Topology, rows: int) -> None:
    if topology.rank == 0:
        say_once(f"{call_site()}: the last {rows % topology.size} of {rows} rows are left out ({topology.size} ranks)")
