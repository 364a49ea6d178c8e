"""Each rank reads files of its own: `dp.shard(files, by="file", read=…)`.

Files hold different numbers of records, and ranks that take unequal numbers of steps wait for each other for ever. So
the ranks compare their numbers before the first record is read. Comparing while they read would need no counting, but
tf.data reads ahead on threads of its own, and a rank that has left its loop would be waited for there.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from .. import collective as collectives
from ..foundation import TfdpError, call_site, say_once
from ..framework import as_written
from ..job import current
from .order import differing_ranks

# A tf.data.Dataset: TensorFlow ships no types.
Dataset = Any
Read = Callable[[Dataset], Dataset]
_KEPT = " (dp.shard(…, remainder='weight') keeps them)"


def records_of(files: Any, read: Read | None) -> Dataset:
    """The records of all files, in the order in which the files are given.

    Raises:
        TypeError: the files are no list or dataset of paths; `read` gives no dataset.
        ValueError: there is no `read`.
    """
    if read is None:
        raise ValueError(f"dp.shard(…, by='file') at {call_site()} needs read=, such as read=tf.data.TFRecordDataset")
    given = files if isinstance(files, tf.data.Dataset) else tf.data.Dataset.from_tensor_slices(_paths(files))
    records = read(given)
    if not isinstance(records, tf.data.Dataset):
        raise TypeError(f"read= of dp.shard at {call_site()} gives a {type(records).__name__}, not a tf.data.Dataset")
    return records


def sharded_files(files: Any, read: Read | None, keep_all: bool, source_check: bool) -> Dataset:
    """The records of this rank's files `r::N`, in the order of their names; see `dp.shard`. Every rank calls it.

    Args:
        files: paths, the same on every rank.
        read: makes a dataset of records of a dataset of paths.
        keep_all: else every rank ends after as many records as the rank with the fewest has.
        source_check: compare the paths over the ranks.
    """
    topology = current().topology
    if not tf.executing_eagerly():
        raise ValueError(f"dp.shard(…, by='file') at {call_site()} is inside a tf.function: call it outside")
    # Lists of files come in the order of a directory, or shuffled by each rank for itself.
    paths = sorted(_paths(files))
    if source_check and (others := differing_ranks(b"\0".join(paths), "files of dp.shard")):
        raise TfdpError(
            f"the {len(paths)} files given to dp.shard at {call_site()} are others on rank(s) {others} than on rank "
            "0: every rank must be given the same paths. If each has files of its own on purpose, say "
            "dp.shard(…, source_check=False)"
        )
    if len(paths) < topology.size:
        raise ValueError(
            f"{len(paths)} file(s) at {call_site()} cannot be sharded over {topology.size} ranks: write the records to "
            "more files, or shard them one by one, dp.shard(records)"
        )
    records = records_of(paths[topology.rank :: topology.size], read)
    counts = _counts(records)
    if counts[0] == tf.data.INFINITE_CARDINALITY:
        _say(len(paths), "")
        return records
    count = int(counts[topology.rank] if keep_all else counts.min())
    left_out = 0 if keep_all else int(counts.sum() - counts.min() * topology.size)
    _say(len(paths), f"; {left_out} of {counts.sum()} records are left out of each pass{_KEPT}" if left_out else "")
    # Where a pass has fewer records than were counted, this is an error, and no wait for other ranks.
    return records.take(count).apply(tf.data.experimental.assert_cardinality(count))


def _paths(files: Any) -> list[bytes]:
    if isinstance(files, tf.data.Dataset):
        files = list(files.as_numpy_iterator())
    elif tf.is_tensor(files) or isinstance(files, np.ndarray):
        files = np.asarray(files).tolist()
    if not isinstance(files, (list, tuple)):
        raise TypeError(f"dp.shard(…, by='file') at {call_site()} has {files!r}: a list or dataset of paths is needed")
    try:
        return [os.fsencode(each) for each in files]
    except TypeError as error:
        raise TypeError(f"dp.shard(…, by='file') at {call_site()} is given what is no path: {error}") from None


def _counts(records: Dataset) -> Any:
    """The number of records of every rank's files, int64 `[size]`; negative where they are infinite, on all ranks."""
    mine = int(records.cardinality())
    if mine == tf.data.UNKNOWN_CARDINALITY:
        mine = _counted(records)
    counts = collectives.allgather(tf.constant([mine], tf.int64), name="numbers of records of dp.shard").numpy()
    if (counts < 0).any() and (counts >= 0).any():
        raise ValueError(f"the data at {call_site()} is infinite on some ranks and ends on others")
    if empty := ", ".join(map(str, np.flatnonzero(counts == 0))):
        raise ValueError(f"the files of rank(s) {empty} hold no records (dp.shard at {call_site()})")
    return counts


def _counted(records: Dataset) -> int:
    """How many records there are, found out by reading them all."""
    if _has_infinite_source(records):
        raise ValueError(
            f"the records at {call_site()} repeat for ever and are selected afterwards, so that no rank can tell how "
            "many it has: call .repeat() on what dp.shard returns, not in read="
        )
    if current().topology.rank == 0:
        say_once(
            f"{call_site()}: every rank counts the records of its files, once, by reading them; where read= ends in "
            ".apply(tf.data.experimental.assert_cardinality(n)) they are not counted"
        )
    return int(records.reduce(np.int64(0), as_written(lambda count, _: count + 1)))


def _has_infinite_source(dataset: Dataset) -> bool:
    # `_inputs` is the only way TensorFlow offers from a dataset to its inputs (2.15 to 2.21).
    infinite = int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY
    return infinite or any(map(_has_infinite_source, dataset._inputs()))


def _say(files: int, left_out: str) -> None:
    topology = current().topology
    if topology.rank == 0:
        say_once(
            f"{call_site()}: {files} whole files are sharded over {topology.size} ranks, so records come in another "
            f"order than in one process{left_out}"
        )
