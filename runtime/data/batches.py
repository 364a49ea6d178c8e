"""Each rank's share of a source that yields batches already."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from .. import collective as collectives
from ..foundation import TfdpError, Topology, call_site, say_once
from ..framework import as_written
from ..job import current
from .batch_sequences import base_of, sharded_sequence
from .batch_streams import ShardedBatches, Stream, of_each_call
from .loops import watched_dataset
from .order import Log, checked

_EVERY = 512  # as `Log` has it
_SAMPLED = 4096  # elements of each part of a batch: microseconds


class _BatchLog(Log):
    def refuse(self, passed: int, count: int, rank: int) -> None:
        mine = self._job.topology.rank
        raise TfdpError(
            f"the batches given to dp.shard_batches at {self.site} differ between rank {mine} and rank {rank}, first "
            f"among batches {count // 2 if count < _EVERY else count - _EVERY} to {count - 1} of pass {passed}. Each "
            "rank must read the same batches in the same order: shuffle with seed=dp.shuffle_seed(), and let no rank "
            "read the data alone"
        )


@as_written
def shard_batches(source: Any, *, split: bool = False, order_check: bool = True, only_if: bool = True) -> Any:
    """This rank's batches of a source that yields batches: batch `k` goes to rank `k mod N`.

    One step of all ranks covers N batches of the source. The last incomplete group of N is left out, and so is a group
    whose batches have different numbers of examples; that is said once on stderr. Every rank must read the same batches
    in the same order; all ranks take equally many steps, whatever the source's length.

    Args:
        source: a `tf.data.Dataset` of batches; a Keras `Sequence` or `PyDataset`, `ImageDataGenerator.flow…` among
            them, of which each rank reads only its own items; a Python generator, iterator or other iterable of
            batches; or a generator function.
        split: each rank takes rows `r::N` of every batch instead, without the last `m mod N` of a batch's m rows: the
            batch keeps its size, as one of all ranks together. Batches with fewer rows than ranks are left out.
        order_check: compare what the ranks read: a hash of a sample of each batch; of a `Sequence` its arrays and lists
            at each epoch.
        only_if: False returns the source itself.

    Returns:
        The same kind of thing. For a generator, an iterator and a dataset of unknown length an object that is a
        `tf.data.Dataset` for `fit` and `tf.function`s, and yields what the source does in a Python loop: there the
        ranks agree before each step whether all have another batch, so that one whose data ends early ends all. With
        one worker the source itself.

    Raises:
        TypeError: it yields nothing.
        ValueError: a dataset that is not batched; fewer batches than ranks.
        TfdpError: the ranks' sources differ, or without `split` the batches that a generator gives for one step are of
            different lengths (from a `tf.data.Dataset` TensorFlow raises it as `tf.errors.UnknownError` with the
            message).
    """
    topology = current().topology
    if topology.size == 1 or not only_if:
        return source
    if isinstance(source, tf.data.Dataset):
        sharded = _sharded_dataset(source, split, order_check, topology)
        if not isinstance(sharded, ShardedBatches):
            sharded = watched_dataset(sharded)
        # What `image_dataset_from_directory` has put there: class_names, file_paths.
        vars(sharded).update({name: value for name, value in vars(source).items() if not name.startswith("_")})
        return sharded
    if base_of(source) is not None:
        return sharded_sequence(source, split, order_check)
    if callable(source) and not isinstance(source, Iterable):
        return of_each_call(source, split, order_check)
    if not isinstance(source, Iterable) or isinstance(source, (str, bytes, dict, np.ndarray)) or tf.is_tensor(source):
        raise TypeError(
            f"dp.shard_batches at {call_site()} takes what yields batches, not a {type(source).__name__}: use dp.shard "
            "for arrays"
        )
    return ShardedBatches(Stream(source, split, order_check))


def _sharded_dataset(dataset: Any, split: bool, check: bool, topology: Topology) -> Any:
    first = [_batch_size(spec) for spec in tf.nest.flatten(dataset.element_spec)]
    count = tf.get_static_value(dataset.cardinality())
    count = int(tf.data.UNKNOWN_CARDINALITY if count is None else count)
    if tf.executing_eagerly():
        if count == tf.data.UNKNOWN_CARDINALITY:
            return ShardedBatches(Stream(dataset, split, check), _any_size(dataset.element_spec))
        _check_same_count(count)
    if 0 <= count < (1 if split else topology.size):
        raise ValueError(f"{count} batch(es) at {call_site()} cannot be sharded over {topology.size} ranks")
    if check:
        dataset = checked(dataset, _BatchLog, _SAMPLED)
    equal = all(size is not None for size in first)
    if split:
        return _split(dataset, first[0] if equal else None, topology)
    if equal and count != tf.data.UNKNOWN_CARDINALITY:
        return _whole(dataset, count, topology)
    return _whole_and_equal(dataset, count, topology)


def _batch_size(spec: Any) -> int | None:
    shape = spec.shape
    if shape.rank == 0:
        raise ValueError(f"dp.shard_batches at {call_site()} needs batches: dp.shard shards records")
    size: int | None = None if shape.rank is None else shape[0]
    return size


def _any_size(element_spec: Any) -> Any:
    """The structure of what is made of batches: a part of a batch, of any size."""

    def free(spec: Any) -> Any:
        return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype) if isinstance(spec, tf.TensorSpec) else spec

    return tf.nest.map_structure(free, element_spec)


def _check_same_count(count: int) -> None:
    counts = collectives.allgather(tf.constant([count], tf.int64), name="length of dp.shard_batches").numpy().tolist()
    if len(set(counts)) > 1:
        said = ", ".join(f"rank {rank}: {each}" for rank, each in enumerate(counts))
        raise TfdpError(f"the datasets at {call_site()} have different numbers of batches ({said})")


def _whole(dataset: Any, count: int, topology: Topology) -> Any:
    if count == tf.data.INFINITE_CARDINALITY:
        return dataset.shard(topology.size, topology.rank)
    left_out = count % topology.size
    if left_out:
        _say(topology, f"the last {left_out} of {count} batches are left out of each pass")
    return dataset.take(count - left_out).shard(topology.size, topology.rank)


def _whole_and_equal(dataset: Any, count: int, topology: Topology) -> Any:
    """By windows of N batches, which keep ragged shapes apart."""
    if count != tf.data.INFINITE_CARDINALITY:
        size = topology.size
        last = f"the last {count % size} of {count}" if count >= 0 else f"up to {size - 1} at the end"
        which = f"{last} batches are left out of each pass, and " if count < 0 or count % size else ""
        _say(topology, f"{which}groups of {size} batches of different sizes, as with a last small one, are left out")

    @as_written
    def mine(*window: Any) -> Any:
        parts = window[0] if len(window) == 1 else window
        whole = parts if isinstance(parts, tf.data.Dataset) else tf.data.Dataset.zip(parts)
        sizes = whole.map(as_written(lambda *batch: _rows(batch)))
        start = tf.constant(-1, tf.int64), tf.constant(0, tf.int64)
        most, least = sizes.reduce(start, as_written(_bounds))
        return whole.skip(topology.rank).take(tf.cast(tf.equal(most, least), tf.int64))

    return dataset.window(topology.size, drop_remainder=True).flat_map(mine)


def _bounds(bounds: tuple[Any, Any], size: Any) -> tuple[Any, Any]:
    most, least = bounds
    return tf.maximum(most, size), tf.where(most < 0, size, tf.minimum(least, size))


def _rows(batch: Any) -> Any:
    first = tf.nest.flatten(batch)[0]
    if isinstance(first, tf.RaggedTensor):
        return tf.cast(first.nrows(), tf.int64)
    return (first.dense_shape if isinstance(first, tf.SparseTensor) else tf.shape(first, tf.int64))[0]


def _split(dataset: Any, size: int | None, topology: Topology) -> Any:
    if any(isinstance(spec, tf.SparseTensorSpec) for spec in tf.nest.flatten(dataset.element_spec)):
        raise ValueError(f"sparse batches at {call_site()} cannot be split by rows: shard records before .batch(…)")
    if size is None or size % topology.size:
        _say(topology, f"up to {topology.size - 1} rows of a batch are left out, should its size not divide")
    if size is None:
        dataset = dataset.filter(as_written(lambda *batch: _rows(batch) >= topology.size))
    elif size < topology.size:
        raise ValueError(f"batches of {size} row(s) at {call_site()} cannot be sharded over {topology.size} ranks")

    @as_written
    def part(*batch: Any) -> Any:
        rows = _rows(batch)
        end = rows - rows % topology.size
        found = tf.nest.map_structure(lambda each: each[topology.rank : end : topology.size], batch)
        return found[0] if len(found) == 1 else found

    return dataset.map(part, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)


def _say(topology: Topology, what: str) -> None:
    if topology.rank == 0:
        say_once(f"{call_site()}: {what} ({topology.size} ranks)")
