"""Each rank's batches of a source that is read one batch after the other: generators, iterators, lists of batches."""

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import Ordinals, TfdpError, call_site, is_users, say_once
from ..job import current
from .array_shares import local_part
from .common_end import CommonEnd, Place
from .loops import end, new_source, take
from .rows import digest, leaves, length

_streams = Ordinals()
_LOOKED_AHEAD = 2


class Stream:
    """A source of which every rank reads all batches and keeps its own.

    Batches are read when they are asked for and not before, so that what they draw stays in its order with what else
    the script draws.
    """

    def __init__(self, source: Iterable[Any], split: bool, check: bool) -> None:
        self._source, self._split, self._check = source, split, check
        self.site = call_site()
        self._end = CommonEnd(current(), self.site, f"{self.site}/{_streams.next(self.site)}")
        self._passes = itertools.count()
        self._taken = new_source(self.site)

    def batches(self) -> Iterator[Any]:
        """A pass: this rank's batches until the first rank has come to its end. Every rank makes it."""
        place, found = Place(next(self._passes), 0, 0), True
        source, running = iter(self._source), 0
        try:
            while found:
                group, place, running = self._next_group(source, place, running)
                found = False  # until all have answered: whoever has asked about a group does not leave it any more
                found = self._end.go_on(place, running if group else None)
                place = place._replace(group=place.group + 1)
                if found:
                    topology = current().topology
                    take(self._taken._replace(batch=place.group, site=self.site))
                    yield local_part(group[0], topology) if self._split else group[topology.rank]
            end(self.site)
        finally:
            if found:
                self._end.leave(place)

    def _next_group(self, source: Iterator[Any], place: Place, running: int) -> tuple[list[Any], Place, int]:
        """The next batches that can be sharded, none at the end; how many were read, and the hash of them all."""
        width = 1 if self._split else current().topology.size
        while True:
            group = list(itertools.islice(source, width))
            place = place._replace(batches=place.batches + len(group))
            if len(group) < width:
                if group:
                    rows = sum(map(rows_of, group))
                    self._say(f"the last {len(group)} of {place.batches} batches ({rows} examples) are")
                return [], place, running
            running = self._hash(running, group)
            if not self._left_out(group, place.batches):
                self._refuse_lengths(group, place.batches)
                return group, place, running

    def _hash(self, running: int, group: list[Any]) -> int:
        if self._check:
            for batch in group:
                running = digest(running, [_dense(part) for part in leaves(batch, lists=True)])
        return running

    def _left_out(self, group: list[Any], read: int) -> bool:
        """Whether the group cannot be sharded equally, which is said the first time."""
        rows = [rows_of(batch) for batch in group]
        size = current().topology.size
        if self._split:
            if rows[0] % size:
                self._say(f"the last {rows[0] % size} of {rows[0]} rows of a batch are")
            return rows[0] < size
        if len(set(rows)) == 1:
            return False
        numbers = ", ".join(map(str, rows))
        self._say(f"batches {read - size + 1} to {read} ({sum(rows)} examples), which have {numbers} rows, are")
        return True

    def _refuse_lengths(self, group: list[Any], read: int) -> None:
        """All ranks read the group and come here alike."""
        shapes = [[tuple(getattr(part, "shape", ())[1:]) for part in leaves(batch, lists=True)] for batch in group]
        if all(each == shapes[0] for each in shapes):
            return
        raise TfdpError(
            f"batches {read - len(group) + 1} to {read} at {self.site} are of different shapes, {shapes}: each was "
            "padded by itself, and together they are no batch of one process. Let each rank take its rows of every "
            "batch, dp.shard_batches(…, split=True), as `tfdp migrate --batch global` writes it, or pad to one length"
        )

    def _say(self, what: str) -> None:
        topology = current().topology
        if topology.rank == 0:
            say_once(f"{self.site}: {what} left out ({topology.size} ranks)")


def rows_of(batch: Any) -> int:
    """How many examples a batch has, by its first part."""
    parts = leaves(batch, lists=True)
    if not parts:
        raise ValueError(f"an empty batch at {call_site()}")
    return int(length(parts[0]))


class ShardedBatches(tf.data.Dataset):  # type: ignore[misc]
    """A stream's batches: a `tf.data.Dataset` for Keras and `tf.function`s; in a Python loop what the source yields.

    Without a prefetch: a batch is read when a step needs it, on all ranks at the same step, so that no thread waits for
    a rank that has stopped reading.
    """

    def __init__(self, stream: Stream, element_spec: Any = None) -> None:
        # Not the base's: what that sets follows from a dataset, which is made when TensorFlow first asks for it.
        self._stream, self._spec = stream, element_spec
        self._made: Any = None
        self._first: list[Any] = []
        self._rest: Iterator[Any] | None = None

    def __iter__(self) -> Any:
        if is_users(sys._getframe(1).f_code.co_filename) and tf.executing_eagerly():
            return self._elements()
        return iter(self._dataset())

    @property
    def element_spec(self) -> Any:
        """The structure of a batch; for a Python source two batches are read to find it."""
        return self._dataset().element_spec

    @property
    def _variant_tensor(self) -> Any:
        return self._dataset()._variant_tensor

    def _inputs(self) -> list[Any]:
        return []

    def __getattr__(self, name: str) -> Any:
        """What a dataset keeps of itself, such as its options."""
        if name.startswith(("__", "_self_")) or "_made" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._dataset(), name)

    def cardinality(self) -> Any:
        """Unknown."""
        return tf.constant(tf.data.UNKNOWN_CARDINALITY, tf.int64)

    def _elements(self) -> Iterator[Any]:
        if self._rest is None:
            return self._stream.batches()
        return self._looked_at()

    def _looked_at(self) -> Iterator[Any]:
        """The pass that was begun to find the structure."""
        rest, self._rest = self._rest, None
        first, self._first = self._first, []
        yield from first
        yield from rest or ()

    def _dataset(self) -> Any:
        if self._made is None:
            with tf.init_scope():
                spec, change = (self._spec, _same) if self._spec is not None else (self._look(), _for_tensorflow)
                made = tf.data.Dataset.from_generator(lambda: map(change, self._elements()), output_signature=spec)
                options = tf.data.Options()
                options.deterministic = True
                if hasattr(options.experimental_optimization, "inject_prefetch"):
                    options.experimental_optimization.inject_prefetch = False
                self._made = made.with_options(options)
        return self._made

    def _look(self) -> Any:
        """The structure of the first batches, of which Keras looks at two as well: dimensions may differ."""
        self._rest = self._stream.batches()
        self._first = list(itertools.islice(self._rest, _LOOKED_AHEAD))
        if not self._first:
            raise ValueError(f"there is no batch for every rank at {self._stream.site}")
        found = [_for_tensorflow(batch) for batch in self._first]
        return tf.nest.map_structure(_spec_of, *found)


def _same(batch: Any) -> Any:
    return batch


def _for_tensorflow(batch: Any) -> Any:
    """Lists become tuples, which tf.data takes for structure; a missing sample weight at the end is left away."""
    if isinstance(batch, dict):
        return {key: _for_tensorflow(part) for key, part in batch.items()}
    if isinstance(batch, (list, tuple)):
        members = [_for_tensorflow(part) for part in batch]
        while members and members[-1] is None:
            members.pop()
        return tuple(members)
    if batch is None or tf.is_tensor(batch):
        return batch
    return np.asarray(batch)


def _spec_of(*parts: Any) -> Any:
    if isinstance(parts[0], (tf.RaggedTensor, tf.SparseTensor)):
        return tf.type_spec_from_value(parts[0]).most_specific_common_supertype(
            [tf.type_spec_from_value(part) for part in parts[1:]]
        )
    shapes = [tuple(part.shape) for part in parts]
    if not shapes[0]:
        return tf.TensorSpec([], parts[0].dtype)
    sizes = [size[0] if len(set(size)) == 1 else None for size in zip(*shapes, strict=True)]
    dtype = parts[0].dtype
    return tf.TensorSpec([None, *sizes[1:]], tf.string if getattr(dtype, "kind", "") in ("U", "S", "O") else dtype)


def _dense(part: Any) -> Any:
    return part.values if isinstance(part, tf.SparseTensor) else part


def of_each_call(function: Callable[..., Iterable[Any]], split: bool, check: bool) -> Callable[..., Iterator[Any]]:
    """A generator function whose generators yield this rank's batches."""
    site = call_site()

    def sharded(*arguments: Any, **named: Any) -> Iterator[Any]:
        stream = Stream(function(*arguments, **named), split, check)
        stream.site = site
        return stream.batches()

    return sharded
