"""Refuse what sharded calls cannot train.

What it does
    Nothing by itself. Where every worker runs the whole script, `dp.init(shard_calls=True)` gives all of them rank 0's
    clocks, dates, process numbers, files, commands and the system's chance, and one entropy for what has no seed.

Why
    The workers share the calls of one model: they must come to them in one order, with the same batch.

Example
    np.random.seed(int(time.time()))
    # stays: time.time() is rank 0's on all workers

When it refuses
    Where a thread or process that the script starts trains; where the script replaces what a gradient tape or Keras'
    layers do; where variables are trained without a gradient tape, and nothing else trains: nothing could be shared.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._base import CALLS_ONLY, Context, Outcome

ROADS = CALLS_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    del context
    return iter(())
