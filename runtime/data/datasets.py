"""Each rank's share of the training data, and what the global batch size and step counts become on one rank."""

import operator
import os
from collections.abc import Callable
from typing import Any, Literal

import tensorflow as tf

from .. import collective as collectives
from ..foundation import Max, Topology, call_site, say_once
from ..framework import as_written
from ..job import current, widened_by
from .array_shares import sharded_arrays
from .file_shares import records_of, sharded_files
from .loops import watched_dataset
from .order import check_same_source, checked

# TensorFlow ships no types.
Dataset = Any
_FAR = 0.02  # of a number of steps: so far may what they are divided into be from it, and nothing is said


@as_written
def shard(
    dataset: Dataset,
    *,
    by: Literal["record", "file"] = "record",
    read: Callable[[Dataset], Dataset] | None = None,
    remainder: Literal["drop", "weight"] = "drop",
    order_check: bool = False,
    source_check: bool = True,
    only_if: bool = True,
    validation_split: float = 0.0,
) -> Dataset:
    """This rank's records: record `i` of the stream, or row `i` of the arrays, goes to rank `i mod N`.

    Shard records, not batches, before an unseeded shuffle and after a leading `repeat`: then the ranks' `k`-th batches
    together are the `k`-th batch of one process with N times the batch size.

    Args:
        dataset: the same stream of records on every rank, of any structure; or whole arrays, as `fit` takes them
            (tuples, lists and dictionaries of them too; None stays None). What yields batches: `dp.shard_batches`.
        by: "file" shards whole files, `r::N` in the order of their names: `dataset` is then a list or dataset of paths.
            The records come in another order than in one process; and all ranks get as many as the rank with the
            fewest, for which they are counted by reading them once, unless their cardinality is known.
        read: the records of a dataset of paths, for "file": `tf.data.TFRecordDataset`, or a function of one's own,
            which drops what is not trained on. Records, not batches.
        remainder: "drop" leaves out the last `n mod N` records of a pass, so that all ranks get equally many, and says
            so on stderr. "weight" shards them too; for `count_examples` and `DistributedGradientTape(batch_size=…)`.
        order_check: compare the content of the stream over the ranks as it is read (records 1, 2, 4, 8, … and every
            512th of each pass), for streams whose order could differ by rank. It costs a Python call for each record,
            and cannot see that one rank has begun a pass that the others have not.
        source_check: compare the number and structure of the records and the first one (all of what lies in memory,
            1 s for 1 GB), or the paths, over the ranks, once, now (outside `tf.function`s, and where `order_check` does
            not compare more). Set it to False for records that are made different on purpose.
        only_if: False returns all records: for functions that make training data and others. The same on every rank.
        validation_split: of arrays, the part that `dp.held_out` gives to validation; the rows before it are sharded.

    Returns:
        A dataset of the same structure; with one worker all records. Of arrays the same structure with `n // N` rows,
        views where the arrays have views.

    Raises:
        TypeError: it is neither a `tf.data.Dataset` nor arrays, or not paths.
        ValueError: fewer records or files than ranks; datasets inside the records of a checked stream; arrays with
            different numbers of rows; arguments that are unknown, or that do not go together.
        TfdpError: the ranks' streams differ, by the source check; on every rank. While iterating, by the order check
            (TensorFlow raises it as `tf.errors.UnknownError` with the message).
    """
    arrays = by == "record" and not isinstance(dataset, tf.data.Dataset)
    _check_options(arrays=arrays, by=by, read=read, remainder=remainder, order=order_check, split=validation_split)
    sharded = only_if and current().topology.size > 1
    if by == "file":
        whole = remainder == "weight"
        if not sharded:
            return records_of(dataset, read)
        return watched_dataset(sharded_files(dataset, read, whole, source_check))
    if arrays:
        return sharded_arrays(dataset, validation_split, source_check) if only_if else dataset
    return watched_dataset(_shard_records(dataset, remainder, order_check, source_check)) if sharded else dataset


def _check_options(*, arrays: bool, by: str, read: Any, remainder: str, order: bool, split: float) -> None:
    if remainder not in ("drop", "weight"):
        raise ValueError(f"remainder is {remainder!r} at {call_site()}: it must be 'drop' or 'weight'")
    if by not in ("record", "file"):
        raise ValueError(f"by is {by!r} at {call_site()}: it must be 'record' or 'file'")
    if by == "record" and read is not None:
        raise ValueError(f"dp.shard at {call_site()}: read= is for by='file'")
    if by == "file" and order:
        raise ValueError(f"dp.shard at {call_site()}: by='file' gives each rank other records: leave out order_check")
    if split and not arrays:
        raise ValueError(f"dp.shard at {call_site()}: validation_split is for arrays, not for a tf.data.Dataset")
    if remainder != "drop" and arrays:
        raise ValueError(f"remainder is {remainder!r} at {call_site()}: that is for a tf.data.Dataset, not for arrays")


def _shard_records(dataset: Dataset, remainder: str, order_check: bool, source_check: bool) -> Dataset:
    topology = current().topology
    records = _cardinality(dataset)
    if order_check:
        dataset = checked(dataset)
    elif source_check and tf.executing_eagerly():
        check_same_source(dataset)
    if 0 < records < topology.size:
        raise ValueError(f"{records} record(s) at {call_site()} cannot be sharded over {topology.size} ranks")
    if remainder == "weight" or records == tf.data.INFINITE_CARDINALITY:
        return dataset.shard(topology.size, topology.rank)
    if records == tf.data.UNKNOWN_CARDINALITY:
        return _shard_whole_groups(dataset, topology)
    return _sharding_known(dataset, records, topology)


def _cardinality(dataset: Dataset) -> int:
    """The number of elements, or TensorFlow's negative constants; unknown inside a `tf.function`."""
    value = tf.get_static_value(dataset.cardinality())
    return int(tf.data.UNKNOWN_CARDINALITY if value is None else value)


def _sharding_known(dataset: Dataset, records: int, topology: Topology) -> Dataset:
    left_out = records % topology.size
    if left_out:
        _say(topology, f"the last {left_out} of {records} records are left out of each pass")
    return dataset.take(records - left_out).shard(topology.size, topology.rank)


def _shard_whole_groups(dataset: Dataset, topology: Topology) -> Dataset:
    """Windows keep ragged shapes apart, where batches could not be made; an incomplete one is dropped."""
    _say(topology, f"up to {topology.size - 1} records at the end of each pass are left out, should they not divide")

    @as_written
    def mine(*window: Any) -> Dataset:
        parts = window[0] if len(window) == 1 else window
        whole = parts if isinstance(parts, tf.data.Dataset) else tf.data.Dataset.zip(parts)
        return whole.skip(topology.rank).take(1)

    return dataset.window(topology.size, drop_remainder=True).flat_map(mine)


def _say(topology: Topology, what: str) -> None:
    if topology.rank == 0:
        say_once(f"{call_site()}: {what} ({topology.size} ranks; dp.shard(…, remainder='weight') keeps them)")


@as_written
def count_examples(dataset: Dataset) -> Dataset:
    """Pairs `(batch, count)` of a batched dataset, equally many on all ranks.

    For `shard(…, remainder="weight")`, where one rank's last batch is smaller or missing. A rank that has fewer batches
    repeats its first one with count 0. Give the count to `DistributedGradientTape(tape, batch_size=count)`; the mean
    gradient over all examples comes out. Every rank calls it, because they compare their numbers of batches.

    Args:
        dataset: batches, all parts with the same first dimension; how many must be known.

    Returns:
        A dataset of `(batch, count)`; `count` is an int64 scalar, the first dimension of the batch.

    Raises:
        ValueError: records that are not batched; an unknown number of batches; a rank without any batch.
    """
    spec = tf.nest.flatten(dataset.element_spec)
    if not spec or spec[0].shape.rank == 0:
        raise ValueError(f"dp.count_examples at {call_site()} needs batches: call .batch(…) before it")
    counted = dataset.map(_with_count)
    if current().topology.size == 1:
        return counted
    batches = _cardinality(dataset)
    _check_countable(batches)
    with tf.init_scope():
        most, fewest = collectives.allreduce(tf.constant([batches, -batches], tf.int64), Max).numpy() * (1, -1)
    if (most < 0) != (fewest < 0):
        raise ValueError(f"the data at {call_site()} is infinite on some ranks and ends on others")
    if fewest == 0 and most > 0:
        raise ValueError(f"a rank has no batch at {call_site()}, another one has {most}: there are too few records")
    if most <= batches:
        return counted
    filler = counted.take(1).map(as_written(lambda batch, count: (batch, tf.zeros_like(count))))
    return counted.concatenate(filler.repeat(most - batches))


def _check_countable(batches: int) -> None:
    if batches == tf.data.UNKNOWN_CARDINALITY:
        raise ValueError(
            f"the number of batches at {call_site()} is unknown, so ranks that have fewer cannot wait for the others: "
            "state the number of records with .apply(tf.data.experimental.assert_cardinality(n)) before dp.shard, and "
            "put filters and flat_maps before it"
        )


@as_written
def _with_count(*parts: Any) -> tuple[Any, Any]:
    batch = parts[0] if len(parts) == 1 else parts
    first = tf.nest.flatten(batch)[0]
    if isinstance(first, tf.RaggedTensor):
        return batch, tf.cast(first.nrows(), tf.int64)
    shape = first.dense_shape if isinstance(first, tf.SparseTensor) else tf.shape(first, tf.int64)
    return batch, shape[0]


def rank_path(path: Any) -> Any:
    """The name of a file of this rank's own, for what each rank writes: `Dataset.cache(file)`.

    Args:
        path: a string or path; an empty one, which stands for memory, is kept.

    Returns:
        `path` with the rank and the number of ranks at its end; with one worker, `path` itself.
    """
    topology = current().topology
    if topology.size == 1 or not path:
        return path
    return f"{os.fspath(path)}-{topology.rank}-of-{topology.size}"


@as_written
def local_batch_size(batch_size: int, *, only_if: bool = True) -> int:
    """This rank's part of a global batch.

    Args:
        batch_size: the number of examples in a global batch.
        only_if: False returns it as it is: for functions that make training data and others.

    Raises:
        TypeError: it is not an integer.
        ValueError: the number of ranks does not divide it.
    """
    if not only_if:
        return batch_size
    return even(batch_size) // current().topology.size


def even(batch_size: int) -> int:
    """The batch size, which the ranks divide.

    Raises:
        TypeError: it is not an integer.
        ValueError: the number of ranks does not divide it.
    """
    size = current().topology.size
    value = whole_number("the batch size", batch_size)
    if value < 1:
        raise ValueError(f"the batch size is {value} at {call_site()}: it must be at least 1")
    if value % size:
        divisors = ", ".join(str(number) for number in range(1, value + 1) if value % number == 0)
        raise ValueError(
            f"the batch size {value} at {call_site()} cannot be divided over {size} ranks: run as many ranks as "
            f"divide it ({divisors}), choose a multiple of {size}, or migrate the script with --shard calls"
        )
    return value


@as_written
def local_steps(steps: Any, *, down: bool = False, whole: bool = True, only_if: bool = True) -> Any:
    """How many steps over N times the batch cover what `steps` steps covered: `steps / N`, rounded half up, at least 1.

    Args:
        steps: an int, or an integer tensor. 0 and negative numbers stand for "none" and "all" and are kept. Of a list
            or tuple, each. A float, as schedules take for a number of steps, is divided and not rounded.
        down: round down, for a loop that takes its batches from data that may end: the share of a rank then has as
            many wherever the whole had `steps`.
        whole: False gives `steps / N` as it is, a float where N does not divide it: for schedules, which take one.
        only_if: False returns it as it is: for functions that make training data and others.

    A number that is far from a multiple of N is said once.

    Raises:
        TypeError: it is none of these.
    """
    if not only_if:
        return steps
    half = 0 if down else 1
    size = widened_by()
    if tf.is_tensor(steps):
        if not steps.dtype.is_integer:
            raise TypeError(f"the number of steps at {call_site()} is a tensor of {steps.dtype.name}: use tf.cast")
        if size == 1:
            return steps
        if not whole:
            return steps / size
        return tf.where(steps > 0, tf.maximum((2 * steps + half * size) // (2 * size), 1), steps)
    if isinstance(steps, (list, tuple)):
        return [local_steps(each) for each in steps]
    if isinstance(steps, float):
        return steps if size == 1 or steps <= 0 else steps / size
    value = whole_number("the number of steps", steps)
    if size == 1 or value <= 0:
        return steps
    if not whole and value % size:
        return value / size
    found = max(1, (2 * value + half * size) // (2 * size))
    if abs(found * size - value) > _FAR * value and current().topology.rank == 0:
        say_once(
            f"{value} steps at {call_site()} are {found} of {size} workers each, as many as {found * size}: where that "
            f"matters choose a multiple of {size}, or --batch global"
        )
    return found


def whole_number(what: str, value: Any) -> int:
    """The value as an int. Raises TypeError where it is none, naming `what` and the place."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r} at {call_site()}: an integer is needed") from None
