"""Constants that stand for the batch follow the local batch.

What it does
    Looks, with `--batch global`, for other uses of the constant that is the training batch size: noise shapes, divisors
    of losses, hidden states.

Why
    In the `global` mode each worker's batch is B/N. A constant that still says B makes shapes or means wrong.

Example
    noise = tf.random.normal([BATCH, 100])  # refused with --batch global

When it refuses
    Wherever the name of the batch size is used for anything but batching.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfdp.rules._base import Context, Outcome


def outcomes(context: Context) -> Iterator[Outcome]:  # noqa: ARG001
    yield from ()
