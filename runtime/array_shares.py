"""Each rank's rows of whole arrays: what `fit` takes as `x`, `y` and `sample_weight`."""

import math
import numbers
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfdp.runtime.arrays import digest, length
from tfdp.runtime.autograph import as_written
from tfdp.runtime.call_site import call_site
from tfdp.runtime.errors import TfdpError
from tfdp.runtime.job import current
from tfdp.runtime.order import differing_ranks
from tfdp.runtime.places import say_once
from tfdp.runtime.topology import Topology


def is_batched_source(data: Any) -> bool:
    """Whether it yields batches: a generator, an iterator, a `Sequence` or `PyDataset`."""
    return hasattr(data, "__next__") or any(cls.__name__ in ("PyDataset", "Sequence") for cls in type(data).__mro__)


def dealt_arrays(data: Any, validation_split: float, source_check: bool) -> Any:
    """This rank's rows `r::N` of the first `n - n % N` of each array; see `dp.shard`."""
    topology = current().topology
    if validation_split:
        data = _each(data, lambda part: _rows(part)[: _split_at(data, validation_split)])
    if topology.size == 1:
        return data
    parts = leaves(data)
    if not parts:
        return data
    rows = _equal_length(parts)
    if source_check and tf.executing_eagerly():
        _check_same_arrays(parts, rows)
    if rows < topology.size:
        raise ValueError(f"{rows} row(s) at {call_site()} cannot be dealt to {topology.size} ranks")
    end = rows - rows % topology.size
    if end < rows:
        _say(topology, rows)
    return _each(data, lambda part: _rows(part)[topology.rank : end : topology.size])


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
    return _each(data, lambda part: _rows(part)[_split_at(data, validation_split) :])


def _split_at(data: Any, validation_split: float) -> int:
    """Where Keras cuts: it rounds the length of the first part down."""
    if not isinstance(validation_split, numbers.Real) or not 0 < validation_split < 1:
        raise ValueError(f"validation_split is {validation_split!r} at {call_site()}: greater than 0, less than 1")
    rows = _equal_length(leaves(data))
    cut = math.floor(rows * (1.0 - validation_split))
    if cut in (0, rows):
        raise ValueError(f"validation_split={validation_split} of {rows} row(s) at {call_site()} leaves one side empty")
    return cut


def _each(data: Any, change: Callable[[Any], Any]) -> Any:
    if data is None:
        return None
    if isinstance(data, dict):
        return {key: _each(part, change) for key, part in data.items()}
    if _is_structure(data):
        members = [_each(part, change) for part in data]
        return type(data)(*members) if hasattr(data, "_fields") else type(data)(members)
    return change(data)


def _is_structure(data: Any) -> bool:
    """Tuples, and lists of arrays, which Keras takes for several inputs; a list of numbers or strings holds rows."""
    if isinstance(data, tuple):
        return True
    nested = (dict, tuple, type(None))
    return isinstance(data, list) and all(isinstance(part, nested) or len(_shape(part)) > 0 for part in data)


def _shape(part: Any) -> Any:
    shape = getattr(part, "shape", ())
    return () if shape is None else shape


def local_part(batch: Any, topology: Topology) -> Any:
    """Rows `r::N` of each part of a batch, without the last `m mod N`."""
    rows = _equal_length(leaves(batch))
    end = rows - rows % topology.size
    return _each(batch, lambda part: _rows(part)[topology.rank : end : topology.size])


def leaves(data: Any) -> list[Any]:
    """The arrays of a structure, in order."""
    found: list[Any] = []
    _each(data, found.append)
    return found


def _rows(part: Any) -> Any:
    """What slices by rows: of a data frame or series not the labels, but the places."""
    return getattr(part, "iloc", part)


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
    """Compare number, shape and a sample of the rows over the ranks. Every rank calls it."""
    said = f"{rows}".encode() + digest(0, parts).to_bytes(8, "little")
    others = differing_ranks(said, "arrays of dp.shard")
    if others:
        raise TfdpError(
            f"the arrays that dp.shard deals at {call_site()} differ on rank(s) {others} from rank 0's: "
            "each rank must hold the same rows in the same order. Draw splits and permutations from a generator seeded "
            "alike on all ranks (dp.shuffle_seed()), or, if they differ on purpose, say dp.shard(…, source_check=False)"
        )


def _say(topology: Topology, rows: int) -> None:
    if topology.rank == 0:
        say_once(f"{call_site()}: the last {rows % topology.size} of {rows} rows are left out ({topology.size} ranks)")
