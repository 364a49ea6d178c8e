"""The order of the data, and the generators that decide about data, under control of the proof."""

from __future__ import annotations

import inspect
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from ..record import BY_FILE, ORDERS_DIFFER, SAME_BATCH, SEEDED, SHARDED, SHARDED_AGAIN, SHUFFLED, Header, hashes
from .notes import Notes


class Seeds:
    """All generators start alike in the reference and on rank 0, and otherwise on other ranks, as in life.

    From `dp.init` on, Python's and NumPy's are alike everywhere: that of rank 0 and of the reference.
    """

    def __init__(self, seed: int, rank: int, changed: Callable[[str], None]) -> None:
        """changed: told what is changed for the line that is running."""
        self._seed = seed
        self._rank = rank
        self._unseeded = 0
        self._changed = changed
        self.agreed: set[int] = set()
        self.given: list[int] = []
        self.common: set[int] = set()  # those of `given` that are one for all ranks

    def install(self) -> None:
        """Seed, and watch what the script seeds itself."""
        random.seed(self._seed + self._rank)
        np.random.seed((self._seed + self._rank) % 2**32)
        tf.random.set_seed(self._seed + self._rank)
        set_seed, default_rng = tf.random.set_seed, np.random.default_rng

        def watched(seed: int) -> None:
            self.given.append(int(seed))
            set_seed(seed)

        def generator(seed: Any = None) -> np.random.Generator:
            start = self._start(seed)
            return default_rng(seed) if start is None else default_rng(start)

        tf.random.set_seed = watched
        np.random.default_rng = generator
        random.seed, np.random.seed = self._seeding(random.seed), self._seeding(np.random.seed)

    def _start(self, seed: Any) -> list[int] | None:
        """What a generator without a seed, or with one of the job's, starts from in a proof; None for other seeds.

        As in life nothing makes unseeded generators of two ranks alike, but a seed that all ranks share.
        """
        agreed = isinstance(seed, int) and seed in self.agreed
        if seed is not None and not agreed:
            return None
        self._unseeded += 1
        self._changed(SEEDED)
        return [self._seed, self._unseeded, 0 if agreed else self._rank]

    def _seeding(self, seed_all: Callable[..., None]) -> Callable[..., None]:
        """`random.seed` or `np.random.seed`."""

        def seeded(*args: Any, **options: Any) -> None:
            start = self._start(args[0] if args else next(iter(options.values()), None))
            if start is None:
                seed_all(*args, **options)
            else:
                seed_all(sum(number * 7919**place for place, number in enumerate(start)) % 2**32)

        return seeded

    def sharing(self, common_seed: Callable[[], None]) -> Callable[[], None]:
        """`dp.common_seed`, remembering that what it gives to TensorFlow is the same on all ranks."""

        def shared() -> None:
            before = len(self.given)
            common_seed()
            self.common.update(self.given[before:])

        return shared


class RecordOrder:
    """`shuffle` keeps the order, except where it would give each rank another order of the records they share out."""

    def __init__(
        self, seeds: Seeds, rank: int, reference: Header | None, notes: Notes, changed: Callable[[str], None] | None
    ) -> None:
        """changed: told what is changed for the line that is running; without it, nothing is."""
        self._changed = changed
        self._seeds = seeds
        self._notes = notes
        self._rank = rank
        self._reference = reference
        self._sharded: list[Any] = []
        self._disordered: list[Any] = []
        # Arrays that the reference does not have are shares already, taken by hand (`x[dp.rank() :: dp.size()]`).
        self._shares: list[Any] = []
        self.sources: list[int] = []
        self._reading = False
        self._common: set[int] = set(reference.shuffled) if reference else set()
        self.given: list[int] = []

    def install(self) -> None:
        """Wrap `tf.data.Dataset.shuffle` and `.shard` for the rest of the process."""
        shuffle = tf.data.Dataset.shuffle
        signature = inspect.signature(shuffle)

        def ordered(this: Any, *args: Any, **options: Any) -> Any:
            shuffle(this, *args, **options)  # wrong arguments must fail as they do in life
            arguments = signature.bind(this, *args, **options).arguments
            if self._changed is None:
                return shuffle(this, *args, **options)
            self._changed(SHUFFLED)
            seed = self._order(this, arguments.get("seed"))
            if seed is None:
                return this
            shuffled = shuffle(this, arguments["buffer_size"], seed=seed)
            self._disordered.append(shuffled)
            return shuffled

        tf.data.Dataset.shuffle = ordered
        for name in ("batch", "padded_batch"):
            setattr(tf.data.Dataset, name, self._batching(getattr(tf.data.Dataset, name)))
        tf.data.Dataset.shard = self.sharding(tf.data.Dataset.shard)
        tf.data.Dataset.from_tensor_slices = staticmethod(self._slicing(tf.data.Dataset.from_tensor_slices))

    def _slicing(self, slices: Callable[..., Any]) -> Callable[..., Any]:
        """`from_tensor_slices`, noting which arrays it is given."""

        def sliced(tensors: Any, *args: Any, **options: Any) -> Any:
            dataset = slices(tensors, *args, **options)
            if tf.executing_eagerly():
                known = _content(tensors)
                self.sources.append(known)
                if self._reference is not None and known not in self._reference.sources:
                    self._shares.append(dataset)
            return dataset

        return sliced

    def sharding(self, shard: Callable[..., Any]) -> Callable[..., Any]:
        """`shard`, remembering the datasets it returns."""

        def sharded(source: Any, *args: Any, **options: Any) -> Any:
            if options.get("by") == "file" and self._changed is not None:
                source, options = self._by_record(source, options)
            dataset = shard(source, *args, **options)
            if dataset is not source:
                self._note(source)
                self._sharded.append(dataset)
            return dataset

        return sharded

    def sharding_batches(self, shard_batches: Callable[..., Any]) -> Callable[..., Any]:
        """`dp.shard_batches`, noting where it shards."""

        def sharded(source: Any, *args: Any, **options: Any) -> Any:
            share = shard_batches(source, *args, **options)
            if share is not source:
                self._notes.add(SHARDED)
            return share

        return sharded

    def _by_record(self, files: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Whole files come in another order than in the reference, as after a shuffle: here records are sharded."""
        # Not at the top: all instruments are in place before anything of the runtime is imported.
        from ....runtime.data import records_of

        self._notes.add(BY_FILE)
        kept = {name: value for name, value in options.items() if name not in ("by", "read")}
        if isinstance(files, tf.data.Dataset) and _descends(files, self._disordered):
            files = sorted(files.as_numpy_iterator())  # as in life, where files go by their names
        self._reading = True  # what `read` shuffles, each rank does for itself
        try:
            return records_of(files, options.get("read")), kept
        finally:
            self._reading = False

    def _note(self, source: Any) -> None:
        again = _descends(source, self._sharded)
        self._notes.add(SHARDED_AGAIN if again else SHARDED)
        if _descends(source, self._disordered) and not again:
            self._notes.add(ORDERS_DIFFER)

    def _batching(self, batch: Callable[..., Any]) -> Callable[..., Any]:
        """`batch`, noting how many records the training data's have; in the reference all datasets'."""
        signature = inspect.signature(batch)

        def batched(this: Any, *args: Any, **options: Any) -> Any:
            size = signature.bind(this, *args, **options).arguments["batch_size"]
            if isinstance(size, (int, np.integer)) and (self._reference is None or _descends(this, self._sharded)):
                self._notes.add(SAME_BATCH, str(size))
            return batch(this, *args, **options)

        return batched

    def agreed(self, shuffle_seed: Callable[[], int | None]) -> Callable[[], int | None]:
        """`dp.shuffle_seed`, remembering the seeds it gives to all ranks alike."""

        def remembered(given: Any = None) -> Any:
            if given is not None:
                return given
            seed = shuffle_seed()
            self._common |= set() if seed is None else {seed}
            self._seeds.agreed |= set() if seed is None else {seed}
            return seed

        return remembered

    def _order(self, dataset: Any, seed: Any) -> int | None:
        """The seed of a shuffle of `dataset`, None to keep the order."""
        if seed is not None:
            self.given.append(int(seed))
        if self._reference is None or self._reading or _descends(dataset, self._sharded + self._shares):
            return None
        last = self._seeds.given[-1] if self._seeds.given else None
        if seed is None:
            return None if last in self._seeds.common else 1 + self._rank
        if int(seed) not in self._common:
            return int(seed)
        # TensorFlow mixes the operation's seed with the global one, so a global seed by rank gives an order by rank.
        return None if last is None or last in self._reference.seeded else last


def _content(tensors: Any) -> int:
    """A number for the rows of all arrays of a structure."""
    rows = [hashes(np.atleast_1d(np.asarray(part))) for part in _arrays(tensors)]
    return zlib.crc32(b"".join(part.tobytes() for part in rows))


def _arrays(tensors: Any) -> Iterator[Any]:
    """What `from_tensor_slices` makes tensors of: to it a tuple or dictionary is a structure, and a list an array."""
    if isinstance(tensors, (tuple, dict)):
        for part in tensors.values() if isinstance(tensors, dict) else tensors:
            yield from _arrays(part)
    elif isinstance(tensors, (tf.RaggedTensor, tf.SparseTensor)):
        yield from tf.nest.flatten(tensors, expand_composites=True)
    else:
        yield tensors


def _descends(dataset: Any, ancestors: list[Any]) -> bool:
    """Whether one of `ancestors` is `dataset` or one of the datasets it reads from."""
    known = {id(ancestor) for ancestor in ancestors}
    # `_inputs` is the only way TensorFlow offers from a dataset to its inputs (2.15 to 2.21).
    pending = [dataset]
    while pending:
        one = pending.pop()
        if id(one) in known:
            return True
        # What is sharded may also be an array, or batches from Python.
        pending.extend(one._inputs() if isinstance(one, tf.data.Dataset) else ())
    return False
