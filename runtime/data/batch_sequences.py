"""Each rank's items of a Keras `Sequence` or `PyDataset`: it reads its own and no others."""

import itertools
import os
import threading
import zlib
from typing import Any

import numpy as np

from ..foundation import Ordinals, TfdpError, Topology, call_site, say_once
from ..job import current
from ..keras import is_keras
from .array_shares import local_part
from .batch_streams import rows_of
from .item_draws import ItemDraws
from .order import Log
from .rows import digest

_BASES = ("PyDataset", "Sequence")
_EVERY = 64
_sources = Ordinals()


def base_of(source: object) -> type | None:
    """The class of Keras that makes it a sequence of batches; None for anything else."""
    return next((cls for cls in type(source).__mro__ if cls.__name__ in _BASES and is_keras(cls)), None)


class _StateLog(Log):
    """What decides the order of a sequence's items: its arrays and lists, compared at the begin of each epoch."""

    def __init__(self, site: str, stream: str) -> None:
        super().__init__(current(), site, f"sequence/{stream}")
        self._names: dict[int, str] = {}

    def see(self, epoch: int, source: object) -> None:
        """Compare the source as it is now. A list that was empty at first may hold what this rank has read."""
        for name, value in vars(source).items():
            number = zlib.crc32(name.encode())
            if _is_plain(value) and (epoch == 0 or number in self._names or isinstance(value, np.ndarray)):
                self._names[number] = name
                self.check(epoch, number, digest(0, [_listed(value)]))

    def refuse(self, passed: int, count: int, rank: int) -> None:
        mine = self._job.topology.rank
        raise TfdpError(
            f"the sequence given to dp.shard_batches at {self.site} differs between rank {mine} and rank {rank} in "
            f"epoch {passed}: its attribute {self._names[count]!r} holds other values. Its items must be the same in "
            "the same order on all ranks: shuffle with a generator seeded alike on all ranks, which nothing else draws "
            "from, or, if the attribute is a rank's own, say dp.shard_batches(…, order_check=False)"
        )


class _SizeLog(Log):
    """How many examples each item has: those of one group must have equally many."""

    def __init__(self, site: str, stream: str) -> None:
        super().__init__(current(), site, f"sizes/{stream}")
        self._lock, self._process = threading.Lock(), os.getpid()

    def see(self, epoch: int, index: int, rows: int) -> None:
        """Note an item; compared now and then. Not in the worker processes that Keras forks."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._checks[f"{epoch}/{index}"] = rows
            if index & (index + 1) == 0 or index % _EVERY == 0:
                self.check(epoch, index, rows)

    def refuse(self, passed: int, count: int, rank: int) -> None:
        size, mine = self._job.topology.size, self._job.topology.rank
        raise TfdpError(
            f"items {count * size + mine} and {count * size + rank} of the sequence at {self.site} have different "
            f"numbers of examples (epoch {passed}), and rank {mine} and rank {rank} take them in one step: their "
            "gradients would count alike. Make all batches equally large but the last"
        )


class _Shards:
    """Which items are this rank's. Plain numbers, for the worker processes of Keras that know no job."""

    def __init__(self, source: Any, split: bool, topology: Topology, site: str) -> None:
        self.source, self.split, self.topology, self.site = source, split, topology, site
        self._known: dict[int, int] = {}
        self._draws = ItemDraws(source, topology.rank)

    def length(self) -> int | None:
        """The number of items of each rank; None where there is no end."""
        items = _length(self.source)
        if items is None:
            return None
        if items not in self._known:
            self._known[items] = self._sharded(items)
        return self._known[items]

    def item(self, index: int) -> Any:
        """The rank's item."""
        if self.split:
            return local_part(_structured(self.source[index]), self.topology)
        with self._draws.own():
            return self.source[index * self.topology.size + self.topology.rank]

    def _sharded(self, items: int) -> int:
        size = self.topology.size
        whole = items if self.split else items // size
        if self.split:
            whole -= bool(items) and rows_of(self.source[items - 1]) < size
        elif whole and items % size == 0:
            whole -= _last_is_short(self.source, items)
        if whole < 1:
            raise ValueError(f"{items} batch(es) at {self.site} cannot be sharded over {size} ranks")
        left_out = items - (whole if self.split else whole * size)
        if self.topology.rank == 0 and (left_out or self.split):
            rows = f"; up to {size - 1} rows of a batch are, should its size not divide" if self.split else ""
            say_once(f"{self.site}: the last {left_out} of {items} batches are left out{rows} ({size} ranks)")
        return whole


def _structured(batch: Any) -> Any:
    return tuple(batch) if isinstance(batch, list) else batch


def _length(source: Any) -> int | None:
    count = source.num_batches if hasattr(source, "num_batches") else len(source)
    return None if count is None else int(count)


def _last_is_short(source: Any, items: int) -> bool:
    # Keras' own iterators say so, and reading one of their items would draw random numbers.
    if hasattr(source, "index_generator") and hasattr(source, "n") and hasattr(source, "batch_size"):
        return bool(source.n % source.batch_size)
    return rows_of(source[items - 1]) != rows_of(source[0])


def _is_plain(value: Any) -> bool:
    """Whether it is an array or list of numbers or strings: the text of other things may hold their addresses."""
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return bool(value.ndim)
    if not isinstance(value, (np.ndarray, list, tuple)):
        return False
    sample = list(value)[:: max(1, len(value) // 64)]
    return len(value) > 1 and all(isinstance(each, (str, bytes, int, float, np.generic)) for each in sample)


def _listed(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else list(value)


def sharded_sequence(source: Any, split: bool, check: bool) -> Any:
    """A sequence of the same kind with this rank's items; see `dp.shard_batches`."""
    site = call_site()
    stream = f"{site}/{_sources.next(site)}"
    shards = _Shards(source, split, current().topology, site)
    logs = (_StateLog(site, stream), _SizeLog(site, stream)) if check else None
    if logs:
        logs[0].see(0, source)
    shards.length()
    base: Any = base_of(source)
    return _class(base)(shards, logs)


def _class(base: Any) -> Any:
    class ShardedSequence(base):  # type: ignore[misc]
        """This rank's items of another sequence, whose other attributes are its own."""

        def __init__(self, shards: _Shards, logs: tuple[_StateLog, _SizeLog] | None) -> None:
            self._shards, self._logs, self._epoch = shards, logs, 0
            if hasattr(base, "use_multiprocessing"):  # Keras 3, where these belong to the data
                source = shards.source
                super().__init__(source.workers, source.use_multiprocessing, source.max_queue_size)

        def __len__(self) -> int:
            length = self._shards.length()
            if length is None:
                raise TypeError("the sequence has no end")
            return length

        @property
        def num_batches(self) -> int | None:
            return self._shards.length()

        def __getitem__(self, index: int) -> Any:
            item = self._shards.item(index)
            if self._logs and not self._shards.split:
                self._logs[1].see(self._epoch, index, rows_of(item))
            return item

        def __iter__(self) -> Any:
            endless = hasattr(self._shards.source, "__next__")
            for number in itertools.count():
                if number:
                    self.on_epoch_end()
                length = self._shards.length()
                for index in itertools.count() if length is None else range(length):
                    yield self[index]
                if not endless:
                    return

        def on_epoch_begin(self) -> None:
            if hasattr(self._shards.source, "on_epoch_begin"):
                self._shards.source.on_epoch_begin()

        def on_epoch_end(self) -> None:
            self._shards.source.on_epoch_end()
            self._epoch += 1
            if self._logs:
                self._logs[0].see(self._epoch, self._shards.source)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or "_shards" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(self._shards.source, name)

    return ShardedSequence
