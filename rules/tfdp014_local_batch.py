"""Constants that stand for the batch follow the local batch.

What it does
    With `--batch global`, finds the uses of the training batch's size in everything that a trained loss is computed
    from: noise shapes, label tensors, hidden states, fixed input shapes, divisors of losses. Each becomes
    `dp.local_batch_size(…)`. Numbers of steps, `n // BATCH`, stay: a worker takes as many steps as the one process did.
    Where the number of examples at hand decides about more than a loss (an update, a rate, a condition), it becomes
    that of all workers: `dp.global_batch_size(len(x))`.

Why
    In the `global` mode each worker's batch is B/N. A constant that still says B makes shapes or means wrong.

Example
    noise = tf.random.normal([BATCH, 100])
    # becomes
    noise = tf.random.normal([dp.local_batch_size(BATCH), 100])

When it refuses
    Where the size is used in a training step in a way that is not understood, and where noise is drawn for a number of
    examples that is not the batch size. Where the number of the examples at hand is compared with another number, or
    decides about an update, a learning rate, a variable, a layer's output or the number of steps, also as a sum over
    batches, and is a shape, an index or a part of a loss as well: one process has those of all workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..migrate import build
from ._base import INPUT_ONLY, Context, Edit, Outcome

ROADS = INPUT_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    if context.batch != "global" or context.script.migrated:
        return
    for site in context.script.batch_uses.sites:
        yield Edit(site, lambda n: build.call(f"{context.dp}.local_batch_size", n), "the local part of the batch")
    for count in context.script.own_numbers.whole:
        yield Edit(count, build.calling(f"{context.dp}.global_batch_size"), "the examples of all workers")
