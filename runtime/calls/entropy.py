"""One entropy for all workers: what would come from the operating system follows from the job's seed.

A script's own seeds stay its own. Not covered: `os.urandom`, `secrets`, `uuid` and `random.SystemRandom`, which are for
names and keys; where one becomes data, the workers' batches differ, and the job ends.
"""

from __future__ import annotations

import functools
import random
import sys
import sysconfig
from typing import Any

import numpy as np
import tensorflow as tf

from ..job import mix
from . import unspent
from .ordered import order_stages

_STANDARD = sysconfig.get_path("stdlib")
_installed: list[int] = []


def common_entropy(seed: int) -> None:
    """From now on generators of Python, NumPy, TensorFlow and Keras that are made without a seed follow from `seed`.

    Python's and NumPy's own are left as they are: those are rank 0's on all workers. Stages of datasets draw in order.
    """
    if not _installed:
        numbers = _Numbers()
        _of_python(numbers)
        _of_numpy(numbers)
        _of_tensorflow(numbers)
        order_stages()
    _installed.append(seed)
    unspent.counts().clear()


def draw_by(seed: int) -> None:
    """Let a process of one draw what the workers do whose common seed, and whose rank 0's, is `seed`."""
    common_entropy(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


class _Numbers:
    """Numbers that nobody has asked for before, in the order in which they are asked for."""

    def next(self, kind: str, bits: int) -> int:
        counts = unspent.counts()
        count = counts[kind] = counts.get(kind, -1) + 1
        parts = (mix(kind, _installed[-1], count, part) << 64 * part for part in range(-(-bits // 64)))
        found: int = sum(parts) % 2**bits
        return found


def _of_python(numbers: _Numbers) -> None:
    original = random.Random.seed

    @functools.wraps(original)
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        if a is None and not isinstance(self, random.SystemRandom) and not _is_pythons_own():
            a = numbers.next("python", 256)
        original(self, a, version)

    random.Random.seed = seed  # type: ignore[method-assign]
    random.seed = random._inst.seed


def _is_pythons_own() -> bool:
    """Whether Python's own library asks, as `tempfile` does: its names are to differ."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") == "random":
        frame = frame.f_back  # type: ignore[assignment]
    path = frame.f_code.co_filename if frame is not None else ""
    return path.startswith(_STANDARD) and "site-packages" not in path


def _of_numpy(numbers: _Numbers) -> None:
    """`SeedSequence()`, from which all unseeded generators come, asks `secrets.randbits` by this name."""
    np.random.bit_generator.randbits = lambda bits: numbers.next("numpy", bits)  # type: ignore[attr-defined]


def _of_tensorflow(numbers: _Numbers) -> None:
    from tensorflow.python.framework import random_seed
    from tensorflow.python.ops import gen_stateful_random_ops

    original = random_seed.get_seed

    @functools.wraps(original)
    def get_seed(op_seed: Any) -> Any:
        found = original(op_seed)
        if found == (None, None):
            return numbers.next("tensorflow", 31), numbers.next("tensorflow", 31)
        return found

    random_seed.get_seed = get_seed
    ints = gen_stateful_random_ops.non_deterministic_ints

    @functools.wraps(ints)
    def non_deterministic_ints(shape: Any, dtype: Any = tf.int64, name: Any = None) -> Any:
        if not tf.executing_eagerly():
            return ints(shape, dtype, name)
        size = [int(each) for each in np.asarray(shape)]
        drawn = [numbers.next("generator", tf.as_dtype(dtype).size * 8 - 1) for _ in range(int(np.prod(size)))]
        return tf.reshape(tf.constant(drawn, dtype), size)

    gen_stateful_random_ops.non_deterministic_ints = non_deterministic_ints
