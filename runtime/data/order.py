"""Whether the ranks read the same records in the same order, found out without ever waiting for one another.

Each rank keeps a log of its stream's running hash in the store, under a key of its own that is there from the start and
replaced at each check; so reading another rank's log never blocks. Of two ranks that come to a record, the later one
sees what the earlier one saw.
"""

import collections
import functools
import hashlib
import itertools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from .. import collective as collectives
from ..foundation import Ordinals, StoreEvictedError, TfdpError, call_site
from ..framework import as_written, made_of
from ..job import Job, current
from .rows import digest

_EVERY = 512
_REMEMBERED = 1024
_HASHES = 2**62
# The log outlives all who read it.
_NEVER_DROPPED = 2**31 - 1
_streams = Ordinals()


class Log:
    """The checks of one stream on one rank: running hash by pass and record."""

    def __init__(self, job: Job, site: str, stream: str) -> None:
        self._job, self.site, self._stream = job, site, stream
        self._passes = itertools.count()
        self._checks: collections.OrderedDict[str, int] = collections.OrderedDict()
        self._publish()

    def note(self, passed: Any, count: Any, running: Any) -> Any:
        """Take in the running hash after `count` records of a pass; gives the pass's number, new with its record 1."""
        number = next(self._passes) if count == 1 else int(passed)
        self.check(number, int(count), int(running))
        return np.int64(number)

    def check(self, number: int, count: int, running: int) -> None:
        """Compare the hash at `count` of pass `number` with those that the other ranks have said."""
        self._checks[f"{number}/{count}"] = running
        while len(self._checks) > _REMEMBERED:
            self._checks.popitem(last=False)
        # First say, then look: whoever comes second finds the other's.
        self._publish()
        topology = self._job.topology
        for rank in range(1, topology.size) if topology.rank == 0 else (0,):
            self._compare(rank)

    def _publish(self) -> None:
        key = f"order/{self._stream}/{self._job.topology.rank}"
        self._job.store.publish(key, json.dumps(self._checks).encode(), readers=_NEVER_DROPPED)

    def _compare(self, rank: int) -> None:
        try:
            theirs = json.loads(self._job.store.fetch(f"order/{self._stream}/{rank}", publisher=rank))
        except StoreEvictedError:
            return
        for check, running in self._checks.items():
            if theirs.get(check, running) != running:
                passed, count = map(int, check.split("/"))
                self.refuse(passed, count, rank)

    def refuse(self, passed: int, count: int, rank: int) -> None:
        """Raise the error for a difference to `rank`."""
        begin = count - _EVERY if count > _EVERY else count // 2
        raise TfdpError(
            f"the records given to dp.shard at {self.site} differ between rank {self._job.topology.rank} and rank "
            f"{rank}, first among records {begin} to {count - 1} of pass {passed}: records would be missed and others "
            "seen twice. Shard before the shuffle, or shuffle with seed=dp.shuffle_seed(), and let no rank read the "
            "data alone"
        )


def checked(dataset: Any, kind: type[Log] = Log, sampled: int | None = None) -> Any:
    """The same dataset, whose content is compared over the ranks while it is read. Every rank calls it.

    Args:
        dataset: any records.
        kind: whose message names the difference.
        sampled: of how many elements of a component the hash is made, about; all if None.

    Raises:
        ValueError: the records hold datasets or other things without a value.
    """
    site = call_site()
    components = tf.nest.flatten(dataset.element_spec, expand_composites=True)
    if any(not isinstance(spec, tf.TensorSpec) or spec.dtype in (tf.variant, tf.resource) for spec in components):
        raise ValueError(
            f"the records at {site} have parts that cannot be compared ({dataset.element_spec}): leave out order_check"
        )
    log = kind(current(), site, f"{site}/{_streams.next(site)}")
    start = tuple(tf.constant(0, tf.int64) for _ in range(3))
    counted = dataset.scan(start, as_written(functools.partial(_step, log.note, sampled)))
    records = dataset.cardinality()
    if tf.get_static_value(records) in (None, tf.data.UNKNOWN_CARDINALITY):
        return counted
    return counted.apply(tf.data.experimental.assert_cardinality(records))


def differing_ranks(said: bytes, name: str) -> str:
    """The ranks, as in "1, 2", that say something else than rank 0. Every rank calls it, by the same `name`."""
    digest = hashlib.blake2b(said, digest_size=8).digest()
    mine = tf.constant([int.from_bytes(digest, "little", signed=True)], tf.int64)
    digests = collectives.allgather(mine, name=name).numpy()
    return ", ".join(str(rank) for rank, each in enumerate(digests) if each != digests[0])


def check_same_source(dataset: Any) -> None:
    """Compare how many records there are, their structure and the first one over the ranks. Every rank calls it.

    Of records that lie in memory, and of what is made from them by stages of a dataset, all are compared.

    Raises:
        TfdpError: they differ; on every rank.
    """
    said = [str(int(dataset.cardinality())), repr(dataset.element_spec)]
    components = tf.nest.flatten(dataset.element_spec, expand_composites=True)
    if all(isinstance(spec, tf.TensorSpec) and spec.dtype not in (tf.variant, tf.resource) for spec in components):
        for record in dataset.take(1):
            parts = tf.nest.flatten(record, expand_composites=True)
            said += [tf.io.serialize_tensor(part).numpy().hex() for part in parts]
    said.append(str(digest(0, _in_memory(dataset), whole=True)))
    others = differing_ranks("\n".join(said).encode(), "source of dp.shard")
    if others:
        raise TfdpError(
            f"the records given to dp.shard at {call_site()} differ on rank(s) {others} from rank 0's: "
            "each rank must read the same records in the same order. Draw splits and permutations from a generator "
            "seeded alike on all ranks (dp.shuffle_seed()), or, if the records differ on purpose, say "
            "dp.shard(…, source_check=False)"
        )


def _in_memory(dataset: Any) -> list[Any]:
    """The dense tensors that a dataset was made from. Nothing public leads to them."""
    held = (part for each in made_of(dataset) for part in getattr(each, "_tensors", ()))
    parts = (part for part in held if hasattr(part, "numpy") and part.shape.rank)
    return [part for part in parts if part.dtype not in (tf.variant, tf.resource)]


def _step(note: Callable[..., Any], sampled: int | None, state: tuple[Any, ...], *record: Any) -> tuple[Any, Any]:
    passed, index, running = state
    components = tf.nest.flatten(record, expand_composites=True)
    if sampled is not None:
        components = [_sample(part, sampled) for part in components]
    parts = [tf.io.serialize_tensor(part) for part in components]
    hashes = [running, *(_hash(part) for part in parts)]
    running = _hash(tf.strings.reduce_join(tf.strings.as_string(tf.stack(hashes)), separator=" "))
    count = index + 1
    due = tf.logical_or(count % _EVERY == 0, tf.bitwise.bitwise_and(count, index) == 0)
    passed = tf.cond(due, lambda: _noted(note, passed, count, running), lambda: passed)
    return (passed, count, running), record[0] if len(record) == 1 else record


def _sample(part: Any, about: int) -> Any:
    flat = tf.reshape(part, [-1])
    return flat[:: tf.maximum(tf.size(flat) // about, 1)]


def _hash(text: Any) -> Any:
    return tf.strings.to_hash_bucket_fast(text, _HASHES)


def _noted(note: Callable[..., Any], *numbers: Any) -> Any:
    passed = tf.numpy_function(note, numbers, tf.int64)
    passed.set_shape([])
    return passed
