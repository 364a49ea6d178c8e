"""Seeds: common to all ranks for decisions about data, different by rank for what is drawn inside the model."""

import hashlib
import operator
import random
import sys
from typing import Any, SupportsIndex

from ..foundation import Ordinals, call_site
from .membership import current, known, shards_calls

_SEEDS = 2**31
_shuffles = Ordinals()


def mix(*parts: object) -> int:
    """A well-mixed integer, 0 to 2**64 - 1, from the text of the parts. The same on every machine."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little")


def shuffle_seed(seed: Any = None) -> Any:
    """A seed for `dataset.shuffle(n, seed=dp.shuffle_seed())` that is the same on all ranks of this job.

    Each call, by its place in the script, gets a seed of its own. Every job has other seeds, as an unseeded shuffle
    would have another order.

    Args:
        seed: what the script seeds with, the same on all ranks; given back as it is, unless it is None.

    Returns:
        0 to 2**31 - 1; None with one worker, whose shuffle stays as it was.
    """
    if seed is not None or known().topology.size == 1:
        return seed
    job = current()  # the order of calls in a child may be another one on each rank
    site = call_site()
    return mix("shuffle", job.seed, site, _shuffles.next(site)) % _SEEDS


def rank_seed(seed: SupportsIndex | None) -> int | None:
    """The seed itself on rank 0, another one on each other rank: `tf.random.set_seed(dp.rank_seed(42))`. With sharded
    calls, where all ranks draw the same, the seed itself on each.

    Args:
        seed: an integer of any size; None, which leaves a generator unseeded, stays None.

    Returns:
        On ranks other than 0: 0 to 2**31 - 1, never the seed itself.

    Raises:
        TypeError: the seed is not an integer.
    """
    if seed is None:
        return None
    if isinstance(seed, bool):
        raise TypeError(f"the seed is {seed!r} at {call_site()}: an integer is needed")
    try:
        value = operator.index(seed)
    except TypeError:
        raise TypeError(f"the seed is {seed!r} at {call_site()}: an integer is needed") from None
    rank = known().topology.rank
    if rank == 0 or shards_calls():
        return value
    mixed = mix("rank", value, rank) % _SEEDS
    return mixed if mixed != value else mixed ^ 1


def common_seed() -> None:
    """Give TensorFlow one global seed on all ranks, another one in each job: for data that TensorFlow draws.

    `seed_by_rank` ends it before training. With one worker nothing is seeded.
    """
    job = current()
    if job.topology.size > 1:
        import tensorflow as tf

        tf.random.set_seed(mix("common", job.seed) % _SEEDS)


def seed_by_rank() -> None:
    """Make what TensorFlow draws from now on differ by rank; rank 0's draws stay as they are.

    Where the ranks had one global seed until now, the new ones follow from it: the same seed gives the same draws in
    each job. A `tf.function` that was traced before keeps its draws.
    """
    rank = current().topology.rank
    if rank > 0 and not shards_calls():
        import tensorflow as tf

        drawn = tf.random.uniform([], maxval=_SEEDS - 1, dtype=tf.int64, seed=0)
        tf.random.set_seed(mix("by rank", int(drawn), rank) % _SEEDS)


def set_random_seed(seed: int) -> None:
    """`keras.utils.set_random_seed` for a job: Python and NumPy get `seed` on all ranks, TensorFlow a seed by rank.

    Decisions about data stay common; dropout, noise and random augmentation differ. Variables start equal all the
    same, because rank 0's initial values are taken.

    Raises:
        TypeError: the seed is not an integer.
        ValueError: it is outside 0 to 2**32 - 1, which NumPy's generator takes.
    """
    import numpy as np
    import tensorflow as tf

    by_rank = rank_seed(seed)
    if not 0 <= seed < 2**32:
        raise ValueError(f"the seed is {seed} at {call_site()}: NumPy needs 0 to {2**32 - 1}")
    tf.keras.utils.set_random_seed(by_rank)
    # With TF_USE_LEGACY_KERAS=1 there are two Keras, each with generators of its own.
    keras = sys.modules.get("keras")
    if keras is not None and hasattr(keras, "utils"):
        keras.utils.set_random_seed(by_rank)
    random.seed(seed)
    np.random.seed(seed)


def stream_mask(rank: int) -> int:
    """What to flip in a generator's state so that each rank draws other numbers: 0 on rank 0, below 2**30.

    The rank is part of it, so no two ranks have the same (up to 2**15 ranks). With sharded calls all draw the same.
    """
    return 0 if rank == 0 or shards_calls() else (mix("stream", rank) % 2**15) << 15 | rank % 2**15
